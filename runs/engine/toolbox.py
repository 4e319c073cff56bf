"""The tools of one run, found by the names that models write (R4, R8)."""

from collections.abc import Sequence

from tools.spec import ToolSpec
from tools.tool_name import build_function_name


class Toolbox:
    """Finds a tool by its exact name, or by the only one that differs in case.

    Its name as a function counts, too.
    """

    def __init__(
        self, tools: Sequence[ToolSpec], *, as_functions: bool = False
    ) -> None:
        self.tools = tuple(tools)
        self._as_functions = as_functions
        self._exact = {build_function_name(tool.name): tool for tool in tools}
        self._exact |= {tool.name: tool for tool in tools}
        self._folded: dict[str, list[ToolSpec]] = {}
        for name, tool in self._exact.items():
            self._folded.setdefault(name.casefold(), []).append(tool)

    @property
    def names(self) -> str:
        """All names as the model knows them, in order, separated by commas."""
        names = [tool.name for tool in self.tools]
        return ", ".join(
            map(build_function_name, names) if self._as_functions else names
        )

    def find(self, name: str) -> ToolSpec | None:
        """Return the tool called `name`, which is already stripped."""
        if (tool := self._exact.get(name)) is not None:
            return tool
        same = self._folded.get(name.casefold(), [])
        return same[0] if len(same) == 1 else None
