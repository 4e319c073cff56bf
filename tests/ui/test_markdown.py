"""Markdown of models as HTML, within limits."""

import pytest

from runs.ui.markdown import (
    MARKUP,
    MAX_MARKUP_CHARACTERS,
    HtmlCache,
    render_markdown,
)


def fence(language, code):
    return f"```{language}\n{code}\n```\n"


def test_code_has_colors():
    html = render_markdown(fence("python", 'print("<b>")'))

    assert '<span class="h-nb">print</span>' in html
    assert "<b>" not in html


@pytest.mark.parametrize("language", ["adl", "amdgpu", "abap", '"><script>', "no-such"])
def test_code_of_other_languages_is_plain(language):
    html = render_markdown(fence(language, "a <" * 20_000))

    assert "<span" not in html
    assert "<script" not in html


@pytest.mark.parametrize("character", [*MARKUP, "[[]("])
def test_a_text_of_mostly_markup_is_shown_as_it_is(character):
    html = render_markdown(character * (MAX_MARKUP_CHARACTERS + 1))

    assert html.startswith('<pre class="code plain">')


def test_a_long_report_is_rendered():
    report = "# Part\n\nSome *words* and `code`, [a link](https://example.com).\n\n"

    assert render_markdown(report * 1_500).count("<h1>") == 1_500


def test_the_second_look_costs_nothing():
    text = fence("python", "seen = 'twice'")

    assert render_markdown(text) is render_markdown(text)


def test_the_cache_forgets_what_was_used_longest_ago():
    cache = HtmlCache(limit=10)
    for key, html in ((b"a", "1234"), (b"b", "1234"), (b"a", "1234"), (b"c", "1234")):
        cache.add(key, html)

    assert [cache.get(key) for key in (b"a", b"b", b"c")] == ["1234", None, "1234"]
    cache.add(b"d", "x" * 11)
    assert cache.size == len(cache.pages) == 0
