"""Marking what is searched for."""

import re
from html import unescape

import pytest
from django.utils.safestring import mark_safe
from hypothesis import given
from hypothesis import strategies as st

from runs.ui.highlight import find_excerpt, highlight_matches
from runs.ui.markdown import render_json, render_json_or_text, render_markdown


@pytest.mark.parametrize(
    ("text", "words", "shown"),
    [
        pytest.param("The Sun, sun", "sun", "The <mark>Sun</mark>, <mark>sun</mark>"),
        pytest.param("no hit", "sun", "no hit"),
        pytest.param("no search", "", "no search"),
        pytest.param("<b>sun</b>", "sun", "&lt;b&gt;<mark>sun</mark>&lt;/b&gt;"),
        pytest.param("a<b", "<", "a<mark>&lt;</mark>b", id="itself a tag's beginning"),
        pytest.param("R&D", "amp", "R&amp;D", id="no part of an escape"),
        pytest.param("R&D", "r&d", "<mark>R&amp;D</mark>", id="over an escape"),
        pytest.param("1.2 1x2", "1.2", "<mark>1.2</mark> 1x2", id="no pattern"),
        pytest.param("颐和园", "和", "颐<mark>和</mark>园", id="any script"),
    ],
)
def test_marks_each_place_and_escapes_the_rest(text, words, shown):
    assert highlight_matches(text, words) == shown


@pytest.mark.parametrize(
    ("html", "words", "shown"),
    [
        pytest.param(
            '<a title="sun > moon" href="/sun">sun</a>',
            "sun",
            '<a title="sun > moon" href="/sun"><mark>sun</mark></a>',
            id="attributes stay",
        ),
        pytest.param(
            "<p>a <em>clear</em> day</p>",
            "clear day",
            "<p>a <em><mark>clear</mark></em><mark data-goes-on> day</mark></p>",
            id="through a tag",
        ),
        pytest.param(
            "&#x27;sun&#39;", "'sun'", "<mark>&#x27;sun&#x27;</mark>", id="references"
        ),
    ],
)
def test_keeps_tags_as_they_are(html, words, shown):
    assert highlight_matches(mark_safe(html), words) == shown


def words_in(html):
    """Return what a reader sees of HTML."""
    return unescape(re.sub("<[^<>]*>", "", html))


@given(st.text("<&>\"'a;#x b*`{}[]1,:\\"), st.text('<&>"a;m', min_size=1, max_size=3))
def test_a_hostile_text_stays_text(text, words):
    assert words_in(highlight_matches(text, words)) == text
    for html in (render_markdown(text), render_json_or_text(text), render_json([text])):
        again = highlight_matches(html, words)
        assert words_in(again) == words_in(html)
        assert "<script" not in again


def test_the_line_around_a_hit_begins_shortly_before_it():
    line = find_excerpt(["nothing", f"{'x' * 90} the\nSun {'y' * 900}"], "sun")

    assert line.startswith("…xx")
    assert "x the Sun y" in line
    assert len(line) < 210
    assert find_excerpt(["Sun"], "sun") == "Sun"
    assert find_excerpt(["Moon"], "sun") == ""
