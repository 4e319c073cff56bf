"""The difference of two texts."""

from typing import Any

from tools.ui.diff import DiffBudget, diff_texts


def shown(one: str, other: str, **options: Any) -> list[str]:
    """Return the lines with their sign, marked words in brackets."""
    signs = {"same": " ", "del": "-", "ins": "+", "gap": "~"}
    return [
        signs[line.tone]
        + "".join(f"[{p.text}]" if p.is_marked else p.text for p in line.pieces)
        for line in diff_texts(one, other, **options)
    ]


def test_marks_the_words_that_differ():
    assert shown("It is 4 degrees.", "It is 5 degrees.") == [
        "-It is [4] degrees.",
        "+It is [5] degrees.",
    ]


def test_marks_single_characters_of_chinese():
    assert shown("周六晴", "周日晴") == ["-周[六]晴", "+周[日]晴"]


def test_equal_texts_give_no_line():
    assert shown("a\nb", "a\nb") == []


def test_shows_lines_that_came_and_went():
    assert shown("a\nb\nc", "a\nc\nd") == [" a", "-b", " c", "+d"]


def test_leaves_out_what_is_equal_far_from_a_change():
    one = "\n".join(f"line {n}" for n in range(50))

    assert shown(one, one.replace("line 25", "LINE 25")) == [
        "~23 equal lines",
        " line 23",
        " line 24",
        "-[line] 25",
        "+[LINE] 25",
        " line 26",
        " line 27",
        "~22 equal lines",
    ]


def test_compares_json_by_its_fields():
    assert shown('{"a": 1, "b": 2}', '{"a": 1, "b": 3}') == [
        " {",
        '   "a": 1,',
        '-  "b": [2]',
        '+  "b": [3]',
        " }",
    ]


def test_an_empty_text_against_one_with_words():
    assert shown("", "new") == ["+new"]
    assert shown("old", "") == ["-old"]


def test_says_that_more_differs_than_it_shows():
    one = "\n".join(f"a{n}" for n in range(500))
    other = "\n".join(f"b{n}" for n in range(500))

    assert shown(one, other)[-1].startswith("~More lines differ")


def test_stops_looking_closely_when_it_would_take_long():
    one = " ".join(f"a{n}" for n in range(20_000))
    effort = DiffBudget()
    lines = diff_texts(one, f"b{one}b", effort)

    assert [line.tone for line in lines] == ["del", "ins"]
    assert effort.left > 0


def test_an_exact_comparison_keeps_json_line_separators_and_long_texts():
    assert shown('{"a": 1}', '{"a":1}', is_exact=True) == [
        '-{"a":[ ]1}',
        '+{"a":1}',
    ]
    assert shown("a\u2028b", "a\nb", is_exact=True) == [
        "-a[\u2028b]",
        "+a",
        "+b",
    ]
    long = "x" * 50_000
    assert shown(f"{long}\na", f"{long}\nb", is_exact=True)[-1] == "+[b]"


def test_all_equal_lines_are_kept_without_a_context():
    lines = [f"line {n}" for n in range(300)]
    text = "\n".join(lines)

    options = {"context": None, "most": None, "is_exact": True}
    assert shown(text, text, **options) == [f" {line}" for line in lines]
    assert len(shown(text, f"{text}\nnew", **options)) == 301
