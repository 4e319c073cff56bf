"""The tool that measured runs call."""

from tools.registry import tool


@tool(effect="read")
def add(a: int, b: int) -> int:
    """Add two whole numbers."""
    return a + b
