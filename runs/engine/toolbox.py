"""The tools of one run, found by the names models write (R4, R8)."""

from collections.abc import Sequence

from tools.spec import ToolSpec

_AROUND_NAMES = " \t\r\n\v\f\u3000\"'`*[]“”‘’「」"


def stripped_name(text: str) -> str:
    """Return a tool's name without the white space, quotes and marks around it."""
    name = text.strip(_AROUND_NAMES)
    if name.endswith("()"):
        return name[:-2].strip(_AROUND_NAMES)
    if name.startswith("(") and name.endswith(")"):
        return name[1:-1].strip(_AROUND_NAMES)
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
        """All names, in order, with commas between them."""
        return ", ".join(tool.name for tool in self.tools)

    def find(self, name: str) -> ToolSpec | None:
        """Return the tool called `name`, which is already stripped."""
        if (tool := self._exact.get(name)) is not None:
            return tool
        same = self._folded.get(name.casefold(), [])
        return same[0] if len(same) == 1 else None
