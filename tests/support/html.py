"""HTML without the line breaks of its template, and its text without tags."""

import re
from html.parser import HTMLParser

from django.http import HttpResponse


def join_lines(html: str) -> str:
    """Join lines; a break beside a tag stands for nothing, elsewhere for a space.

    Tests compare the result, so that a template can be wrapped anywhere.
    """
    html = re.sub(r"\s*\n\s*(?=>)|(?<=>)\s*\n\s*", "", html)
    return re.sub(r"\s*\n\s*", " ", html)


def strip_tags(html: str) -> str:
    """Return the text between the tags, with single spaces."""
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


def text_of(page: HttpResponse) -> str:
    return strip_tags(page.content.decode())


class Fields(HTMLParser):
    """What a browser would send of a page's forms."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.sent: dict[str, list[str]] = {}
        self.name, self.text = "", ""
        """Of the text area or list that is being read."""
        self.feed(page)

    def handle_starttag(self, tag: str, given: list[tuple[str, str | None]]) -> None:
        """Take inputs and chosen options."""
        found = dict(given)
        name, kind = found.get("name") or "", found.get("type")
        if tag in ("textarea", "select"):
            self.name, self.text = name, ""
        elif tag == "option" and "selected" in found and self.name:
            self.sent.setdefault(self.name, []).append(found.get("value") or "")
        elif tag == "input" and name and kind != "submit":
            is_box = kind in ("checkbox", "radio")
            if not is_box or "checked" in found:
                self.sent.setdefault(name, []).append(found.get("value") or "")

    def handle_data(self, data: str) -> None:
        """Read on in a text area."""
        self.text += data

    def handle_endtag(self, tag: str) -> None:
        """Take a whole text area."""
        if tag == "textarea" and self.name:
            text = self.text.removeprefix("\n")
            self.sent[self.name] = [text.replace("\n", "\r\n")]
        if tag in ("textarea", "select"):
            self.name = ""
