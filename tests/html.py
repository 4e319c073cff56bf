"""HTML without the line breaks of its template."""

import re


def join_lines(html: str) -> str:
    """Join lines; a break beside a tag stands for nothing, elsewhere for a space.

    Tests compare the result, so that a template can be wrapped anywhere.
    """
    html = re.sub(r"\s*\n\s*(?=>)|(?<=>)\s*\n\s*", "", html)
    return re.sub(r"\s*\n\s*", " ", html)
