"""Markdown that is still being written."""

import pytest

from runs.ui.markdown import render_markdown
from runs.ui.streamed_markdown import StreamedMarkdown, close_line

ANSWER = """# A day out in Beijing

**Weather:** sunny. 5 to 12 °C, `10%` chance of *rain*

| Time | Plan |
|---|---|
| 09:00 | A walk |
| 12:00 | Lunch |

1. Shoes
2. A [map](https://example.org/a_b)

- an umbrella
- a **warm** coat

```python
def walk(**options):
    return "*"
```

> Have fun

Bye ~~now~~ then.
"""


def shown(text):
    """Return the HTML after each character that arrives."""
    rendering = StreamedMarkdown()
    for end in range(1, len(text) + 1):
        rendering.advance(text[:end])
        done = "".join(block.html for block in rendering.blocks)
        yield done + rendering.open_html


def words_of(html):
    """Return the visible text, outside of code."""
    outside = html.split("<pre>")[0] + html.split("</pre>")[-1]
    return "".join(piece.split(">")[-1] for piece in outside.split("<"))


def test_no_marks_are_seen_while_they_come():
    for html in shown(ANSWER):
        for mark in ("**", "|", "`", "#", "~", "](", "- "):
            assert mark not in words_of(html), html


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(ANSWER, id="all kinds of blocks"),
        pytest.param(ANSWER.replace("\n", "\r\n"), id="lines that end with two signs"),
        pytest.param("a\u2028b\n\nc\x0bd\n\ne\n", id="other line ends"),
        pytest.param("Title\n=====\ntext\n***\n1. a\n\n   b\n2. c\n", id="lists"),
    ],
)
def test_in_the_end_it_is_what_the_stored_text_looks_like(text):
    def plain(html):
        return "".join(html.split()).replace("<spanclass=", "<span class=")

    *_, last = shown(text + "\n\nend")
    assert plain(last) == plain(render_markdown(text + "\n\nend"))


def test_a_finished_block_is_rendered_once():
    rendering = StreamedMarkdown()
    for end in range(1, len(ANSWER) + 1):
        before = list(rendering.blocks)
        rendering.advance(ANSWER[:end])
        assert rendering.blocks[: len(before)] == before


@pytest.mark.parametrize("block", ["word ", "- item\n", "x = 1\n"])
def test_the_cost_grows_with_the_length_and_not_with_its_square(monkeypatch, block):
    head = "```\n" if block == "x = 1\n" else ""
    text, parsed = head + block * 6000, []
    rendering = StreamedMarkdown()
    for end in range(30, len(text), 30):
        at = rendering.rendered_at
        rendering.advance(text[:end])
        parsed.append(end if rendering.rendered_at != at else 0)

    assert sum(parsed) < 40 * len(text)


def test_a_line_that_is_not_complete_finishes_no_block():
    text = "a\n*** b *** c\n"
    *_, last = shown(text)

    assert "".join(last.split()) == "".join(render_markdown(text).split())


def test_a_very_long_open_block_is_shown_as_text():
    rendering = StreamedMarkdown()
    rendering.advance("![*a" * 20_000)

    assert rendering.open_html.startswith('<p class="plain-text">![*a![*a')


def test_a_table_appears_with_its_first_two_lines():
    rendering = StreamedMarkdown()
    rendering.advance("| a | b |\n|--")
    assert rendering.open_html == ""
    rendering.advance("| a | b |\n|---|---|\n| 1")

    assert "<th>a</th>" in rendering.open_html
    assert "1" not in rendering.open_html


def test_hostile_text_stays_text():
    *_, last = shown("<script>alert(1)</script> ![x](http://e) [a](javascript:alert(1)")

    assert "<script" not in last
    assert "<img" not in last
    assert 'href="javascript' not in last


@pytest.mark.parametrize(
    ("line", "closed"),
    [
        ("a **b", "a **b**"),
        ("a **b *c", "a **b *c***"),
        ("a **", "a"),
        ("a **b**", "a **b**"),
        ("2 * 3", "2 * 3"),
        ("`a *b", "`a *b`"),
        ("a ``", "a"),
        ("see [the map](https://exa", "see the map"),
        ("see [the", "see the"),
        (r"a \*b", r"a \*b"),
        ("* item **x", "* item **x**"),
        ("a ~~b~", "a ~~b~~"),
    ],
)
def test_what_is_open_in_a_line_is_closed(line, closed):
    assert close_line(line) == closed


@pytest.mark.parametrize("line", ["- a\n", "[a]: b\n", "| a |\n"])
def test_the_end_of_a_very_long_block_is_seldom_looked_for(monkeypatch, line):
    text, parsed = "| a |\n|---|\n" * (line[0] == "|") + line * 20_000, []

    def count(part):
        parsed.append(len(part))
        return 0

    monkeypatch.setattr("runs.ui.streamed_markdown.find_open_block", count)
    monkeypatch.setattr("runs.ui.streamed_markdown.MAX_OPEN_BLOCK", 2_000)
    rendering = StreamedMarkdown()
    for end in range(200, len(text), 200):
        rendering.advance(text[:end])

    assert sum(parsed) < 5 * len(text)


def test_text_after_a_very_long_block_is_rendered_again():
    text = "- item\n" * 4_000
    rendering = StreamedMarkdown()
    rendering.advance(text)
    rendering.advance(text + "\n**word**\n" * 2_000)

    assert "<li>item</li>" in rendering.blocks[0].html
    assert rendering.open_html == "<p><strong>word</strong></p>\n"
