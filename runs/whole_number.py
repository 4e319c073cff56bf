"""Whole numbers in URLs and forms: ids, positions, sequence numbers."""

MAX_BIGINT = 2**63 - 1
"""The largest id; a database refuses larger ones."""
MAX_BIGINT_DIGITS = len(str(MAX_BIGINT))


def parse_whole_number(text: str) -> int | None:
    """Return the number of ASCII digits; None for anything else, and over 63 bits.

    Signs and spaces are refused, and long texts are not converted: Python raises.
    """
    if not (text.isascii() and text.isdigit() and len(text) <= MAX_BIGINT_DIGITS):
        return None
    number = int(text)
    return number if number <= MAX_BIGINT else None
