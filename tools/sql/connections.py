"""The databases an operator lets SQL tools read."""

import re
from os.path import expanduser
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from tools.errors import ToolFailed

CONNECTION_NAME = re.compile(r"[a-zA-Z0-9_-]{1,40}")


class UnknownConnection(ToolFailed):
    """The operator named no such database."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"There is no database {name!r}; an operator names them in "
            "AGENTSITE_SQL_CONNECTIONS."
        )


class SqlConnection(NamedTuple):
    name: str
    url: str
    """With its password; never shown."""

    @property
    def is_sqlite(self) -> bool:
        return self.url.startswith("sqlite:")

    @property
    def path(self) -> str:
        """The file of an SQLite database; `~` is the home folder."""
        return expanduser(unquote(urlsplit(self.url).path.removeprefix("/")))


def parse_sql_connections(text: str) -> dict[str, SqlConnection]:
    """Return the databases by name; raise `ValueError` with a sentence.

    The sentence never repeats an address: it may hold a password.
    """
    found: dict[str, SqlConnection] = {}
    for entry in text.split():
        name, equals, url = entry.partition("=")
        if not equals or not CONNECTION_NAME.fullmatch(name):
            raise ValueError("write each database as name=URL, separated by spaces")
        scheme = url.partition(":")[0]
        if scheme not in ("postgresql", "postgres", "sqlite"):
            raise ValueError(f"{name!r} is neither postgresql:// nor sqlite://")
        one = SqlConnection(name, url)
        if one.is_sqlite and not one.path:
            raise ValueError(f"{name!r} names no file; write sqlite:///path/to/file")
        found[name] = one
    return found


def find_sql_connection(name: str, text: str) -> SqlConnection:
    """Return one database; raise `UnknownConnection`."""
    try:
        return parse_sql_connections(text)[name]
    except KeyError:
        raise UnknownConnection(name) from None
