"""`OptionalFields`: parts of a request that are left out where they are refused."""

import re
from collections.abc import Callable

from runs.engine.types import Reply
from runs.llm.errors import ModelFailed


class OptionalFields:
    """Fields the engine can do without, and which of them a server does not know."""

    def __init__(self, *names: str) -> None:
        self._names = names
        self.unwanted: frozenset[str] = frozenset()

    def tried(self, ask_once: Callable[[frozenset[str]], Reply]) -> Reply:
        """Return what `ask_once` returns, without the fields that it is refused for."""
        while True:
            try:
                return ask_once(self.unwanted)
            except ModelFailed as failed:
                name = self._refused(failed)
                if name is None:
                    raise
                self.unwanted |= {name}

    def _refused(self, failed: ModelFailed) -> str | None:
        """Return the field that a refusal names, once for each."""
        if failed.status not in (400, 422) or failed.code != "bad_request":
            return None
        for name in self._names:
            named = re.search(rf"(?<![\w ]){name}(?![\w ])", str(failed))
            if named and name not in self.unwanted:
                return name
        return None
