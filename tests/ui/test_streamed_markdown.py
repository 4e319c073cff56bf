"""Markdown that is still being written."""

import re

import pytest
from markdown_it import MarkdownIt

from runs.ui import streamed_markdown
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
        yield rendered(rendering)


def rendered(rendering):
    done = [block.render("items") for block in rendering.blocks]
    return "".join([*done, rendering.open_html])


def words_of(html):
    """Return the visible text, outside of code."""
    outside = re.split("<pre[^>]*>", html)[0] + html.split("</pre>")[-1]
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

    assert len(rendering.blocks) == 7  # all but the last


@pytest.mark.parametrize(
    ("head", "line", "longest", "times"),
    [
        pytest.param("", "- an **item**\n", 3_000, 6, id="list"),
        pytest.param("", "1. an **item**\n\n", 3_000, 6, id="list of paragraphs"),
        pytest.param("", "- a\n  - b\n    - c\n", 3_000, 6, id="nested list"),
        pytest.param("| a |\n|---|\n", "| b |\n", 3_000, 6, id="table"),
        pytest.param("", "a **word** ", 5_000, 20, id="line"),
        pytest.param("", "a **line**\n", 5_000, 20, id="lines"),
        pytest.param("", "> a **line**\n", 5_000, 20, id="quote"),
        pytest.param("- a\n", "  - b\n", 5_000, 20, id="list in one item"),
        pytest.param("", "[a]: b\n", 5_000, 20, id="links"),
        pytest.param("```\n", "x = 1\n", 200_000, 60, id="code"),
    ],
)
def test_the_cost_grows_with_the_length_and_not_with_its_square(
    monkeypatch, head, line, longest, times
):
    monkeypatch.setattr(streamed_markdown, "MAX_OPEN_BLOCK", 4_000)
    text = head + line * (12_000 // len(line))
    parse, parsed = MarkdownIt.parse, []

    def count(parser, source, *rest):
        parsed.append(len(source))
        return parse(parser, source, *rest)

    monkeypatch.setattr(MarkdownIt, "parse", count)
    rendering = StreamedMarkdown()
    for end in range(200, len(text), 200):
        rendering.advance(text[:end])

    # To parse all of the text two or three times for each piece would be 60 to 90.
    assert sum(parsed) < times * len(text)
    assert max(parsed) < longest


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


LISTS = {
    "bullets": "- an **item**\n",
    "nested": "- a\n  1. b\n  2. c\n",
    "paragraphs": "- a\n\n  b\n\n",
    "code": "- a\n\n  ```\n  x = 1\n  ```\n",
}


@pytest.mark.parametrize("item", LISTS.values(), ids=LISTS)
@pytest.mark.parametrize("step", [47, 500, 20_000])
def test_a_long_list_looks_as_if_it_were_rendered_whole(item, step):
    text = f"# A\n\nb\n\n{item * 400}\n# C\n\nd\n\ne\n"
    rendering = StreamedMarkdown()
    for end in [*range(step, len(text), step), len(text)]:
        rendering.advance(text[:end])

    html = rendered(rendering).replace(' id="items"', "")
    assert "".join(html.split()) == "".join(render_markdown(text).split())


@pytest.mark.parametrize("step", [47, 500, 20_000])
def test_a_long_table_looks_as_if_it_were_rendered_whole(step):
    rows = "".join(f"| {n} | a **b** |\n" for n in range(300))
    text = f"| n | b |\n|---|---|\n{rows}\nAfter `it`\n"
    rendering = StreamedMarkdown()
    for end in [*range(step, len(text), step), len(text)]:
        rendering.advance(text[:end])

    html = rendered(rendering).replace(' id="items"', "")
    assert "".join(html.split()) == "".join(render_markdown(text).split())


def test_the_open_item_of_a_long_numbered_list_has_its_number():
    rendering = StreamedMarkdown()
    rendering.advance("7. one\n" * 400 + "7. **an")

    assert (
        rendering.blocks[0]
        .render("a")
        .startswith('<ol id="a" dir="auto" start="7"><li>one')
    )
    assert rendering.open_html.startswith('<ol start="406" dir="auto">')
    assert "<strong>an</strong>" in rendering.open_html


def test_all_items_are_paragraphs_once_one_of_them_is():
    rendering = StreamedMarkdown()
    rendering.advance("- one\n\n" * 400)
    rendering.advance("- one\n\n" * 400 + "text\n")

    assert rendering.blocks[0].render("a").count("<p>one</p>") == 400


def test_a_very_long_block_stays_text_up_to_a_blank_line():
    rendering = StreamedMarkdown()
    rendering.advance("a **line**\n" * 2_000)
    assert "**line**" in rendering.open_html
    rendering.advance("a **line**\n" * 2_000 + "\n**word**\n" * 2_000)

    assert "**line**" in rendering.blocks[0].render("")
    assert rendering.open_html == '<p dir="auto"><strong>word</strong></p>\n'


def test_a_text_that_comes_at_once_is_rendered_in_pieces():
    text = "- item\n" * 4_000
    rendering = StreamedMarkdown()
    pauses = len(list(rendering.advance_in_steps(text)))

    assert pauses == 6
    assert len(text) - rendering.rendered_at <= 4_000
    assert list(rendering.advance_in_steps(text)) == []
