"""Colors of code blocks: known languages, within limits."""

import pytest

from runs.ui.code_colors import (
    LANGUAGES,
    MAX_CODE_CHARACTERS,
    MAX_CODE_CHARACTERS_PER_TEXT,
    CodeColors,
    load_lexers,
)

ENOUGH_SECONDS = 60.0
"""So that a busy machine leaves no code plain."""


@pytest.mark.parametrize("language", ["python", "py", "Python", "js", "sh", "c++"])
def test_languages_have_colors_by_each_of_their_names(language):
    assert '<span class="h-' in CodeColors(ENOUGH_SECONDS).highlight(
        'x = "a<b"', language
    )


@pytest.mark.parametrize("language", ["", "text", "adl", "amdgpu", "abap", "\0", "__"])
def test_other_languages_are_plain(language):
    assert (
        CodeColors(ENOUGH_SECONDS).highlight('x = "a<b"', language)
        == "x = &quot;a&lt;b&quot;"
    )


def test_every_language_has_a_lexer():
    assert len(set(load_lexers().values())) == len(LANGUAGES)


def test_long_code_is_plain():
    long = "a = 1\n" * (MAX_CODE_CHARACTERS // 6)
    colors = CodeColors(ENOUGH_SECONDS)

    assert "<span" in colors.highlight(long, "python")
    assert colors.highlight(f"{long}a = 1\n", "python") == f"{long}a = 1\n"


def test_many_blocks_share_one_budget():
    code, colors = "a = 1\n" * (MAX_CODE_CHARACTERS // 6), CodeColors(seconds=60)

    shown = [colors.highlight(code, "python") for _ in range(10)]

    colored = sum("<span" in block for block in shown)
    assert colored == MAX_CODE_CHARACTERS_PER_TEXT // len(code)


def test_code_that_takes_too_long_is_plain():
    colors = CodeColors(seconds=0)

    assert colors.highlight("a < 1", "python") == "a &lt; 1"
