"""A long list or table that is still being written: each item or row is rendered once.

An item is complete when another one has begun after it, a row when its line is whole.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from markdown_it.token import Token

from runs.ui.code_colors import CodeColors
from runs.ui.markdown import PARSER, sanitize_html

TAGS = {"bullet_list_open": "ul", "ordered_list_open": "ol", "table_open": "table"}
WRAPPERS = {
    "ul": ("<ul>", "</ul>"),
    "ol": ("<ol>", "</ol>"),
    "table": ("<table><tbody>", "</tbody></table>"),
}
"""Tags around items or rows, without which they cannot be sanitized."""
ITEMS = ("list_item_open", "tr_open")
PARAGRAPHS = ("paragraph_open", "paragraph_close")
LINE_END = re.compile(r"\r\n|\r|\n")


class FinishedItems(NamedTuple):
    """Rendered items or rows."""

    html: SafeString
    known_at: int
    """Length of the text when they were known to be complete."""


class TakenText(NamedTuple):
    """How much of a text belongs to complete items."""

    characters: int
    is_over: bool
    """Whether another block has begun after the list or table."""


@dataclass
class GrowingBlock:
    """A list or table, and its complete items or rows."""

    tag: str
    known_at: int
    head: str = ""
    """The head of a table as text, without which its rows cannot be read."""
    head_html: SafeString = SafeString("")
    first_number: int = 1
    is_loose: bool = False
    """Whether the texts of a list's items are paragraphs."""
    count: int = 0
    items: list[FinishedItems] = field(default_factory=list)

    def render(self, element_id: str) -> SafeString:
        """Return what is complete; `element_id` becomes the id around the items."""
        items = self.render_items(after=-1)
        if self.tag == "table":
            body = '{}<tbody id="{}">{}</tbody></table>'
            return format_html(body, self.head_html, element_id, items)
        opening = format_html('<{} id="{}" dir="auto"', self.tag, element_id)
        if self.tag == "ol":
            opening = format_html('{} start="{}"', opening, self.first_number)
        return format_html("{}>{}</{}>", opening, items, self.tag)

    def render_items(self, *, after: int) -> SafeString:
        """Return the items that became known after so many characters of text."""
        new = ((one.html,) for one in self.items if one.known_at > after)
        return format_html_join("", "{}", new)

    def take(self, text: str, known_at: int) -> TakenText:
        """Render the complete items at the beginning of `text`."""
        source = self.head + read_whole_lines(text)
        env = {"colors": CodeColors()}
        block, following = split_first_block(PARSER.parse(source, env))
        self.loosen(block)
        items = group_items(block)
        end = len(LINE_END.findall(self.head))
        if following:
            end = get_lines(following[0])[0]
        elif self.tag == "table":
            end = get_lines(items[-1][0])[1] if items else end
        elif items:
            end = get_lines(items.pop()[0])[0]
        if items:
            tokens = [token for item in items for token in item]
            html = PARSER.renderer.render(tokens, PARSER.options, env)
            self.items.append(FinishedItems(self._sanitize(html), known_at))
            self.count += len(items)
        characters = find_line(source, end) - len(self.head)
        return TakenText(characters, is_over=bool(following))

    def loosen(self, block: Sequence[Token]) -> None:
        """Give each item a paragraph once one of them has one."""
        texts = [one for one in block if one.level == 2 and one.type in PARAGRAPHS]
        self.is_loose |= any(not one.hidden for one in texts)
        for one in texts:
            one.hidden = not self.is_loose

    def continue_block(self, tokens: Sequence[Token]) -> Sequence[Token]:
        """Return the tokens of `head` and the text after the complete items.

        A list continues with its number; rows of a table wait until they are whole.
        """
        block, following = split_first_block(tokens)
        if self.tag == "table":
            return following
        self.loosen(block)
        if self.tag == "ol" and block:
            block[0].attrSet("start", str(self.first_number + self.count))
        return tokens

    def _sanitize(self, html: str) -> SafeString:
        before, after = WRAPPERS[self.tag]
        clean = sanitize_html(before + html + after)
        inner = clean.removeprefix(before).removesuffix(after)
        return mark_safe(inner)  # noqa: S308  # sanitized in the line before


def start_growing(text: str, known_at: int) -> GrowingBlock | None:
    """Return the list or table at the beginning of `text`, yet without items."""
    source = read_whole_lines(text)
    env = {"colors": CodeColors()}
    block, _ = split_first_block(PARSER.parse(source, env))
    if not block or block[0].type not in TAGS or len(group_items(block)) < 2:
        return None
    tag = TAGS[block[0].type]
    growing = GrowingBlock(tag, known_at)
    if tag == "table":
        growing.head = source[: find_line(source, 2)]
        head = sanitize_html(PARSER.render(growing.head, env)).strip()
        growing.head_html = mark_safe(head.removesuffix("</table>"))  # noqa: S308  # sanitized in the line before
    growing.first_number = int(block[0].attrGet("start") or 1)
    return growing


def read_whole_lines(text: str) -> str:
    return text[: text.rfind("\n") + 1]


def find_line(text: str, number: int) -> int:
    """Return where a line begins, counted from 0."""
    if not number:
        return 0
    ends = (match.end() for match in LINE_END.finditer(text))
    return next(islice(ends, number - 1, None))


def get_lines(token: Token) -> list[int]:
    """Return the first line of a block, and the one after its last."""
    assert token.map is not None
    return token.map


def split_first_block(
    tokens: Sequence[Token],
) -> tuple[Sequence[Token], Sequence[Token]]:
    """Return the tokens of the first block, and those of all others."""
    ends = (n for n, one in enumerate(tokens, 1) if one.level == 0 and one.nesting < 1)
    end = next(ends, len(tokens))
    return tokens[:end], tokens[end:]


def group_items(block: Sequence[Token]) -> list[list[Token]]:
    """Return the tokens of each item of a list, or row of a table's body."""
    types = [token.type for token in block]
    first = types.index("tbody_open") + 1 if "tbody_open" in types else 1
    items: list[list[Token]] = []
    for token in block[first:]:
        if token.type in ITEMS and token.level == block[first].level:
            items.append([])
        if token.level >= block[first].level and items:
            items[-1].append(token)
    return items
