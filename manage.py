#!/usr/bin/env python
"""Run a management command."""

import os
import sys

from django.core.management import execute_from_command_line
from django.db import OperationalError, ProgrammingError

NO_TABLES = ("no such table", "relation ")
"""How SQLite and PostgreSQL begin to say that a table is missing."""

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings")
    try:
        execute_from_command_line(sys.argv)
    except (OperationalError, ProgrammingError) as error:
        if not str(error).startswith(NO_TABLES):
            raise
        sys.exit(
            f"The database is not prepared ({str(error).splitlines()[0]}). Give the "
            "AGENTSITE_DATA or DATABASE_URL of `make run`, or run manage.py migrate."
        )
