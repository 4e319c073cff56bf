"""Commands that start MCP servers: only those an operator listed, by their names."""

import re
import shlex
from dataclasses import dataclass

from tools.mcp.errors import UnknownCommand
from tools.sandbox.environment import get_minimal_environment

COMMAND_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)


@dataclass(frozen=True)
class ServerCommand:
    """One line of the list."""

    name: str
    argv: tuple[str, ...]
    variables: tuple[tuple[str, str], ...] = ()

    @property
    def environment(self) -> dict[str, str]:
        """What the server finds in its environment: nothing secret of ours."""
        return {**get_minimal_environment(), **dict(self.variables)}


def parse_server_commands(text: str) -> dict[str, ServerCommand]:
    """Read `name=VARIABLE=value program argument; …`; raise `ValueError`.

    Words are quoted as in a shell, but no shell is run.
    """
    lexer = shlex.shlex(text, posix=True, punctuation_chars=";")
    lexer.whitespace_split = True
    lexer.commenters = ""
    groups: list[list[str]] = [[]]
    for word in lexer:
        if set(word) == {";"}:
            groups.append([])
        else:
            groups[-1].append(word)
    commands: dict[str, ServerCommand] = {}
    for words in filter(None, groups):
        command = parse_server_command(words)
        if command.name in commands:
            raise ValueError(f"there are two commands named {command.name!r}")
        commands[command.name] = command
    return commands


def parse_server_command(words: list[str]) -> ServerCommand:
    """Return the command of one group of words."""
    name, found, first = words[0].partition("=")
    if not found or not COMMAND_NAME.fullmatch(name):
        raise ValueError(
            f"{words[0]!r} does not begin with a name (small letters, digits, - and "
            "_) and ="
        )
    rest, variables = [word for word in (first, *words[1:]) if word], []
    while rest and (match := VARIABLE.fullmatch(rest[0])):
        variables.append((match[1], match[2]))
        del rest[0]
    if not rest:
        raise ValueError(f"the command {name!r} names no program")
    return ServerCommand(name, tuple(rest), tuple(variables))


def find_server_command(name: str, text: str) -> ServerCommand:
    """Return one command of the list; raise `NoCommand`."""
    try:
        return parse_server_commands(text)[name]
    except KeyError:
        raise UnknownCommand(name) from None
