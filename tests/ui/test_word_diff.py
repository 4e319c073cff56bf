"""The difference of two answers."""

from runs.ui.evaluation.word_diff import MAX_COMPARISONS, mark_differences


def test_words_that_differ_are_marked_also_in_other_lines():
    before = "The refund is <b>5</b> days.\nBye"
    after = "The refund takes <b>7</b> days.\nBye\n"

    assert mark_differences(before, after) == (
        "The refund <del>is</del><ins>takes</ins> "
        "&lt;b&gt;<del>5</del><ins>7</ins>&lt;/b&gt; days.\n"
        "Bye<ins>\n</ins>"
    )


def test_each_chinese_character_is_a_word():
    assert (
        mark_differences("退款五天", "退款七天") == "退款<del>五</del><ins>七</ins>天"
    )


def test_an_answer_that_repeats_words_for_ever_is_marked_as_a_whole():
    words = int(MAX_COMPARISONS**0.5)
    before, after = "a b " * words + "c", "b a " * words + "d"

    assert mark_differences(f"Same {before} end", f"Same {after} end") == (
        f"Same <del>{before}</del><ins>{after}</ins> end"
    )
    assert mark_differences(f"One.\n{before}", f"Two.\n{before}") == (
        f"<del>One</del><ins>Two</ins>.\n{before}"
    )
