"""The tools that measured runs call."""

from tools.registry import tool


@tool(effect="read")
def add(a: int, b: int) -> int:
    """Add two whole numbers."""
    return a + b


@tool(effect="side_effect")
def add_with_side_effect(a: int, b: int) -> int:
    """Add two whole numbers; counts as an action that must not happen twice."""
    return a + b
