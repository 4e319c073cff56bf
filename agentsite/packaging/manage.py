"""Run a management command: `manage.py`, or `agentsite manage`."""

import logging
import os
import sys
from collections.abc import Sequence

from django.core.management import execute_from_command_line
from django.db import OperationalError, ProgrammingError

from agentsite.layout import MANAGE_COMMAND, START_COMMAND

NO_TABLES = ("no such table", "relation ")
"""How SQLite and PostgreSQL begin to say that a table is missing."""


def manage(words: Sequence[str]) -> None:
    """Run the command that `words` name; exit with a sentence without a database."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings")
    # Report the cause once, without a warning for each attempt of the pool.
    logging.getLogger("psycopg.pool").setLevel(logging.ERROR)
    try:
        execute_from_command_line([MANAGE_COMMAND, *words])
    except (OperationalError, ProgrammingError) as error:
        sentence = "" if "--traceback" in words else explain_database_error(error)
        if not sentence:
            raise
        sys.exit(sentence)


def explain_database_error(error: OperationalError | ProgrammingError) -> str:
    """Return a sentence on the database; empty for an error in the code."""
    if str(error).startswith(NO_TABLES):
        return (
            f"The database is not prepared ({str(error).splitlines()[0]}). Give the "
            f"AGENTSITE_DATA or DATABASE_URL of `{START_COMMAND}`, or run "
            f"{MANAGE_COMMAND} migrate."
        )
    return explain_outage(error) if isinstance(error, OperationalError) else ""


def explain_outage(error: OperationalError) -> str:
    """Return why the database cannot be used now, or what it reported."""
    from runs.services.health.direct_connection import (  # noqa: PLC0415  (needs Django set up)
        find_connection_problem,
        shorten_database_error,
    )

    if problem := find_connection_problem():
        return (
            f"The database cannot be used: {problem}. "
            "Check the variable DATABASE_URL, and that the server runs."
        )
    return (
        f"The database reported an error: {shorten_database_error(error)}. "
        "The option --traceback shows where."
    )


if __name__ == "__main__":
    manage(sys.argv[1:])
