"""Markdown of models as HTML, within limits."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from markdown_it import MarkdownIt

from runs.ui import markdown
from runs.ui.markdown import (
    MARKUP,
    MAX_MARKUP_CHARACTERS,
    SHORT_TEXT,
    TURN,
    HtmlCache,
    PageBudget,
    render_markdown,
    show_as_it_is,
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


def test_blocks_follow_the_direction_of_their_text_and_code_does_not():
    html = render_markdown(
        "مرحبا `code`\n\n- one\n\n  two\n\n```\ncode\n```\n\n|a|\n|-|"
    )

    assert '<p dir="auto">مرحبا <code dir="ltr">code</code></p>' in html
    assert '<ul dir="auto">\n<li>\n<p>one</p>' in html
    assert '<table dir="auto">' in html
    assert "<pre><code>" in html


def test_a_long_report_is_rendered():
    report = "# Part\n\nSome *words* and `code`, [a link](https://example.com).\n\n"

    assert render_markdown(report * 1_500).count("</h1>") == 1_500


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


def test_one_long_text_is_rendered_at_a_time_and_the_same_one_only_once(monkeypatch):
    parse, parsed, at_once = MarkdownIt.parse, [], []

    def count(*given):
        at_once.append(1)
        parsed.append(len(at_once))
        time.sleep(0.02)
        try:
            return parse(*given)
        finally:
            at_once.pop()

    monkeypatch.setattr(MarkdownIt, "parse", count)
    texts = [f"# Report {n % 2}\n\n" + "*a*\n\n" * SHORT_TEXT for n in range(8)]
    monkeypatch.setattr(markdown, "MAX_WAIT_SECONDS", 60)

    with ThreadPoolExecutor(len(texts)) as threads:
        shown = list(threads.map(render_markdown, texts))

    assert parsed == [1, 1]
    assert {html.count("<em>") for html in shown} == {SHORT_TEXT}


def test_a_long_text_whose_turn_does_not_come_is_shown_as_it_is(monkeypatch):
    monkeypatch.setattr(markdown, "MAX_WAIT_SECONDS", 0.01)
    long, seen = "*new* " * SHORT_TEXT, "*seen* " * SHORT_TEXT
    render_markdown(seen)

    with TURN:
        assert render_markdown(long) == f'<pre class="code plain">{long}</pre>'
        assert "<em>seen</em>" in render_markdown(seen)
        assert "<em>short</em>" in render_markdown("*short*")

    assert "<em>new</em>" in render_markdown(long)


def test_a_page_renders_no_long_text_after_its_time():
    budget, long = PageBudget(seconds=0.01), "*a* " * SHORT_TEXT

    def render(text):
        return budget.render(slow, text, otherwise=show_as_it_is)

    def slow(text):
        time.sleep(0.02)
        return "rendered"

    assert render(long) == "rendered"
    assert render(long).startswith('<pre class="code plain">*a*')
    assert render("*short*") == "rendered"
