"""`OptionalFields`: parts of a request that are omitted if the server refuses them."""

import re
from collections.abc import Callable

from runs.engine.types import Reply
from runs.llm.errors import ModelCallError


class OptionalFields:
    """Fields the engine can do without, and those that a server does not accept."""

    def __init__(self, *names: str) -> None:
        self._names = names
        self.unsupported: frozenset[str] = frozenset()

    def call_without_refused(
        self,
        build: Callable[[frozenset[str]], bytes],
        send: Callable[[bytes], Reply],
    ) -> Reply:
        """Return the reply to a body, sent again without each refused field in it."""
        body = build(self.unsupported)
        while True:
            try:
                return send(body)
            except ModelCallError as failed:
                name = self._find_refused_field(failed)
                if name is None:
                    raise
                refused, body = body, build(self.unsupported | {name})
                if body == refused:
                    raise
                self.unsupported |= {name}

    def _find_refused_field(self, failed: ModelCallError) -> str | None:
        """Return the field that a refusal names, once for each."""
        if failed.status not in (400, 422) or failed.code != "bad_request":
            return None
        for name in self._names:
            named = re.search(rf"(?<![\w ]){name}(?![\w ])", str(failed))
            if named and name not in self.unsupported:
                return name
        return None
