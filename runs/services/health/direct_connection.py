"""Connections that do not come from the pool, which hides why it cannot connect."""

from django.db import OperationalError, connection
from django.db.backends.base.base import BaseDatabaseWrapper


def copy_connection() -> BaseDatabaseWrapper:
    """Return a connection that does not come from the pool."""
    own: BaseDatabaseWrapper = connection.copy()
    own.settings_dict["OPTIONS"].pop("pool", None)
    return own


def try_connection() -> None:
    """Open and close a connection; raise `OperationalError` if that fails."""
    own = copy_connection()
    try:
        own.ensure_connection()
    finally:
        own.close()


def find_connection_problem() -> str:
    """Return why the database accepts no connection, in one line; empty if it does."""
    try:
        try_connection()
    except OperationalError as error:
        return shorten_database_error(error)
    return ""


def shorten_database_error(error: Exception) -> str:
    """Return the first line of the message, as part of a sentence."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
