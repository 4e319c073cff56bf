"""Run a management command: `manage.py`, or `agentsite manage`."""

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
    try:
        execute_from_command_line([MANAGE_COMMAND, *words])
    except (OperationalError, ProgrammingError) as error:
        if not str(error).startswith(NO_TABLES):
            raise
        sys.exit(
            f"The database is not prepared ({str(error).splitlines()[0]}). Give the "
            f"AGENTSITE_DATA or DATABASE_URL of `{START_COMMAND}`, or run "
            f"{MANAGE_COMMAND} migrate."
        )


if __name__ == "__main__":
    manage(sys.argv[1:])
