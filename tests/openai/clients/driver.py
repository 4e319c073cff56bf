"""A process of another environment that does what it is told, one line at a time."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


class ClientError(Exception):
    """The client has raised; `fields` are those of its exception."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields = fields
        super().__init__(json.dumps(fields))


class ClientProcess:
    """A program with somebody else's client library."""

    def __init__(self, process: "subprocess.Popen[str]", base: dict[str, Any]) -> None:
        self._process, self._base = process, base

    def do(self, name: str, **arguments: Any) -> Any:
        """Return what a function of the program returns; raise `ClientError`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        line = json.dumps({"do": name, **self._base, **arguments})
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "The client program has ended."
        done = json.loads(answer)
        if "error" in done:
            raise ClientError(done["error"])
        return done["result"]

    def bind(self, **base: Any) -> "ClientProcess":
        """Return it with arguments of every call."""
        return ClientProcess(self._process, {**self._base, **base})


@contextmanager
def client_process(program: str, script: str) -> Iterator[ClientProcess]:
    """Start a script of this folder."""
    process = subprocess.Popen(
        [program, FOLDER / script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=FOLDER.parent.parent.parent,
    )
    try:
        yield ClientProcess(process, {})
    finally:
        process.kill()
        process.communicate()
