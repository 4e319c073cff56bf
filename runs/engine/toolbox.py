"""The tools of one run, found by the names that models write (R4, R8)."""

from collections.abc import Sequence

from tools.spec import ToolSpec

_NAME_DECORATION = " \t\r\n\v\f\xa0\u200b\u200c\u200d\u2060\u3000\ufeff\"'`*[]“”‘’「」"


def strip_tool_name(text: str) -> str:
    """Return a tool's name without surrounding white space, quotes and marks."""
    name = text.strip(_NAME_DECORATION)
    if name.endswith("()"):
        return name[:-2].strip(_NAME_DECORATION)
    if name.startswith("(") and name.endswith(")"):
        return name[1:-1].strip(_NAME_DECORATION)
    return name


class Toolbox:
    """Finds a tool by its exact name, or by the only one that differs in case."""

    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        self.tools = tuple(tools)
        self._exact = {tool.name: tool for tool in tools}
        self._folded: dict[str, list[ToolSpec]] = {}
        for tool in tools:
            self._folded.setdefault(tool.name.casefold(), []).append(tool)

    @property
    def names(self) -> str:
        """All names, in order, separated by commas."""
        return ", ".join(tool.name for tool in self.tools)

    def find(self, name: str) -> ToolSpec | None:
        """Return the tool called `name`, which is already stripped."""
        if (tool := self._exact.get(name)) is not None:
            return tool
        same = self._folded.get(name.casefold(), [])
        return same[0] if len(same) == 1 else None
