"""Whole numbers as addresses and forms send them: ids of rows, places, sequences."""

HIGHEST = 2**63 - 1
"""What the id of a row can be at most; a database refuses to look for more."""
LONGEST = len(str(HIGHEST))


def whole_number(text: str) -> int | None:
    """Return the number that ASCII digits write; None for all else, and over 63 bits.

    No sign and no space is taken, and nothing long is read: Python itself refuses to.
    """
    if not (text.isascii() and text.isdigit() and len(text) <= LONGEST):
        return None
    number = int(text)
    return number if number <= HIGHEST else None
