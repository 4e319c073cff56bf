"""An empty database beside that of the tests, of the same kind."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper


@contextmanager
def fresh_database(alias: str, folder: Path) -> Iterator[BaseDatabaseWrapper]:
    """Connect to it as `alias` for the block; a SQLite file is in `folder`."""
    default = connections["default"]
    settings = deepcopy(connections.databases["default"])
    settings["OPTIONS"].pop("pool", None)
    name = f"{alias}_{uuid.uuid4().hex[:12]}"
    if default.vendor == "sqlite":
        name = str(folder / "db.sqlite3")
    else:
        with default._nodb_cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {name}")
    connections.databases[alias] = {**settings, "NAME": name}
    try:
        yield connections[alias]
    finally:
        connections[alias].close()
        del connections[alias], connections.databases[alias]
        if default.vendor == "postgresql":
            with default._nodb_cursor() as cursor:
                cursor.execute(f"DROP DATABASE {name} WITH (FORCE)")
