"""What the tools of the pictures call."""

from tools.registry import tool


@tool(effect="read")
def answer(input: str) -> str:
    """Answer with what was asked."""
    return input
