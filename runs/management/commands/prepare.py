"""`prepare`: migrate, create the first user, print a login link."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management import (
    CommandError,
    CommandParser,
    call_command,
)
from django.db import OperationalError, connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.executor import MigrationExecutor

from runs.management.site_command import SiteCommand
from runs.services.health.direct_connection import (
    copy_connection,
    shorten_database_error,
    try_connection,
)

MIGRATION_LOCK_ID = 7_246_001
"""PostgreSQL advisory lock, so that only one of several web servers migrates."""
LOCK_RETRY_SECONDS = 0.2
CONNECT_RETRY_SECONDS = 1.0


class Command(SiteCommand):
    """One process for three steps, as starting Python and Django takes longest."""

    help = "Migrate, create the first user and the demo, and print a login link."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--no-login-link",
            action="store_false",
            dest="login_link",
            help="Do not create and print a login link, as logs would contain it.",
        )
        parser.add_argument(
            "--wait",
            type=float,
            default=0.0,
            metavar="SECONDS",
            help="Wait so long for a database that accepts no connections yet.",
        )

    def handle(self, *args: Any, login_link: bool, wait: float, **options: Any) -> None:
        """Print progress to stderr, and the login link to stdout."""
        try:
            wait_for_database(wait)
            with take_turns():
                apply_migrations()
                call_command("bootstrap", login_link=login_link, stdout=self.stdout)
        except OperationalError as error:
            raise CommandError(
                f"The database cannot be used: {shorten_database_error(error)}. "
                "Check the variable DATABASE_URL."
            ) from error


def wait_for_database(seconds: float) -> None:
    """Wait until the database accepts connections; raise its error if it does not."""
    deadline = time.monotonic() + seconds
    is_waiting = False
    while True:
        try:
            try_connection()
        except OperationalError as error:
            if time.monotonic() >= deadline:
                raise
            if not is_waiting:
                reason = str(error).strip()
                print(f"Waiting for the database: {reason}", file=sys.stderr)
            is_waiting = True
        else:
            return
        time.sleep(CONNECT_RETRY_SECONDS)


@contextmanager
def take_turns() -> Iterator[None]:
    """Let one process at a time run the block; on SQLite there is only one.

    The lock is held in a transaction of its own: a pooler may share sessions.
    """
    if connection.vendor != "postgresql":
        yield
        return
    own = copy_connection()
    own.set_autocommit(False)
    try:
        # An index that the other process builds concurrently waits for the end of
        # transactions that had a snapshot at a bad moment: this one must not stay open.
        while not _try_lock(own):
            own.rollback()
            time.sleep(LOCK_RETRY_SECONDS)
        yield
    finally:
        own.close()


def _try_lock(own: BaseDatabaseWrapper) -> bool:
    with own.cursor() as cursor:
        for name in ("statement", "lock", "idle_in_transaction_session"):
            cursor.execute(f"SET LOCAL {name}_timeout = 0")
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [MIGRATION_LOCK_ID])
        return bool(cursor.fetchone()[0])


def apply_migrations() -> None:
    """Apply missing migrations, which may take their time.

    Timeouts are left alone where other clients share the session.
    """
    shares_sessions = connection.settings_dict.get("DISABLE_SERVER_SIDE_CURSORS")
    if connection.vendor == "postgresql" and not shares_sessions:
        with connection.cursor() as cursor:
            cursor.execute("SET statement_timeout = 0")
            cursor.execute("SET lock_timeout = 0")
    executor = MigrationExecutor(connection)
    missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if missing:
        print(f"Preparing the database ({len(missing)} steps) ...", file=sys.stderr)
        call_command("migrate", interactive=False, stdout=sys.stderr)
    connection.close()  # and with it the timeouts that were removed
