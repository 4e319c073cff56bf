"""Make an installation ready: the database up to date, a first user, a login link."""

import sys
from typing import Any

from django.core.management import BaseCommand, CommandError, call_command
from django.db import OperationalError, connection
from django.db.migrations.executor import MigrationExecutor

ONE_AT_A_TIME = 7_246_001
"""Number of the PostgreSQL lock that lets one of several web servers migrate."""


class Command(BaseCommand):
    """One process for three commands: starting Python and Django takes longest."""

    help = "Migrate, make the first user and the demo, and print a login link."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        """Progress goes to stderr; what a person needs once all runs, to stdout."""
        try:
            migrate()
        except OperationalError as error:
            raise CommandError(
                f"The database cannot be used: {str(error).strip()}. "
                "Check the variable DATABASE_URL."
            ) from error
        call_command("bootstrap", stdout=self.stdout)


def migrate() -> None:
    """Apply what is missing; several processes take turns."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET statement_timeout = 0")
            cursor.execute("SET lock_timeout = 0")
            cursor.execute("SELECT pg_advisory_lock(%s)", [ONE_AT_A_TIME])
    executor = MigrationExecutor(connection)
    missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if missing:
        print(f"Preparing the database ({len(missing)} steps) ...", file=sys.stderr)
        call_command("migrate", interactive=False, stdout=sys.stderr)
    connection.close()  # gives the lock back
