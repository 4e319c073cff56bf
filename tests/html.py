"""HTML without the line breaks of its template, and its text without tags."""

import re

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
