"""`prepare`: migrate, create the first user, print a login link."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from django.core.management import BaseCommand, CommandError, call_command
from django.db import OperationalError, connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.executor import MigrationExecutor

MIGRATION_LOCK_ID = 7_246_001
"""PostgreSQL advisory lock, so that only one of several web servers migrates."""


class Command(BaseCommand):
    """One process for three steps, as starting Python and Django takes longest."""

    help = "Migrate, create the first user and the demo, and print a login link."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        """Print progress to stderr, and the login link to stdout."""
        try:
            apply_migrations()
        except OperationalError as error:
            raise CommandError(
                f"The database cannot be used: {str(error).strip()}. "
                "Check the variable DATABASE_URL."
            ) from error
        call_command("bootstrap", stdout=self.stdout)


def apply_migrations() -> None:
    """Apply missing migrations; concurrent processes take turns."""
    with ExitStack() as stack:
        if connection.vendor == "postgresql":
            stack.enter_context(hold_migration_lock())
            remove_timeouts()
        migrate()
    connection.close()


@contextmanager
def hold_migration_lock() -> Iterator[None]:
    """Hold a lock in a transaction of its own: a pooler may share sessions."""
    own: BaseDatabaseWrapper = connection.copy()
    own.settings_dict["OPTIONS"].pop("pool", None)
    own.set_autocommit(False)
    try:
        with own.cursor() as cursor:
            for name in ("statement", "lock", "idle_in_transaction_session"):
                cursor.execute(f"SET LOCAL {name}_timeout = 0")
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [MIGRATION_LOCK_ID])
            yield
    finally:
        own.close()


def remove_timeouts() -> None:
    """Let migrations take their time, unless other clients share the session."""
    if connection.settings_dict.get("DISABLE_SERVER_SIDE_CURSORS"):
        return
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0")
        cursor.execute("SET lock_timeout = 0")


def migrate() -> None:
    executor = MigrationExecutor(connection)
    missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if missing:
        print(f"Preparing the database ({len(missing)} steps) ...", file=sys.stderr)
        call_command("migrate", interactive=False, stdout=sys.stderr)
