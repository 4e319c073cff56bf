"""Measuring a result inside of the sandbox."""

import pytest

from tools.sandbox.last_value import TOO_LARGE_MARK, UnreadableCode, guard_last_value


def value_of(code):
    """Run guarded code here, as a sandbox does: the last line is the value."""
    before, _, last = guard_last_value(code).rpartition("\n")
    names = {}
    exec(before, names)
    return eval(last, names)


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("1 + 1", 2),
        ("x = 1; x  # a comment", 1),
        ("x = 1;\tx ;", 1),
        ("(\n  1,\n  2,  # two\n)", (1, 2)),
        ("'é' + 'ü'; 'ö' * 2", "öö"),
        ("def f():\n    return 5\nf()\n\n# the end", 5),
        ("a = [\r\n1]\r\na", [1]),
        ("1,", (1,)),
        ("'''\n#\n'''", "\n#\n"),
        ("'a' \\\n 'b'", "ab"),
    ],
)
def test_the_value_stays_what_it_was(code, value):
    assert value_of(code) == value


@pytest.mark.parametrize("code", ["'x' * (5 << 20)", "['x' * 10 ** 6] * 9"])
def test_a_value_that_is_too_large_does_not_come_out(code):
    assert value_of(code) == TOO_LARGE_MARK


@pytest.mark.parametrize("code", ["a +", "(" * 999, "type X = int\n1", "'\\0'\0"])
def test_code_that_cannot_be_taken_apart_is_refused(code):
    with pytest.raises(UnreadableCode):
        guard_last_value(code)


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("\na +", "Line 2: invalid syntax."),
        ("-" * 49_999 + "1", "The code cannot be read: it is nested too deeply."),
        ("1+" * 24_999 + "1", "The code cannot be read: it is nested too deeply."),
        ("a" + "()" * 24_999, "The code cannot be read: it is nested too deeply."),
        ("1\0", "The code cannot be read: source code string cannot contain null"),
        ("'\ud800'", "The code cannot be read: 'utf-8' codec can't encode"),
    ],
    ids=["syntax", "signs", "sums", "calls", "NUL", "surrogate"],
)
def test_why_it_cannot_be_read_is_a_sentence(code, sentence):
    with pytest.raises(UnreadableCode) as caught:
        guard_last_value(code)

    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize("code", ["", "x = 1", "for a in []:\n    a"])
def test_code_without_a_last_value_stays_as_it_is(code):
    assert guard_last_value(code) == code
