"""Emptying the tables after a test that commits.

Django truncates every table and creates the content types and permissions anew, which
takes longer than most tests. Here rows are deleted, and only where there are any.
"""

from functools import cache
from typing import Any

from django.db import connection, transaction
from django.test import TransactionTestCase

KEPT = ["auth_permission", "django_content_type"]
"""Filled by migrations."""
django_flush = TransactionTestCase._fixture_teardown


def delete_rows_instead_of_flushing() -> None:
    """Replace the flush of Django; call it when the test database is new."""
    kept = read_kept()

    def teardown(test_case: TransactionTestCase) -> None:
        nonlocal kept
        if read_kept() == kept:
            delete_all_rows()
        else:  # the test changed what migrations wrote
            django_flush(test_case)
            kept = read_kept()

    TransactionTestCase._fixture_teardown = teardown


def read_kept() -> list[list[Any]]:
    """Return the rows that tests should leave as they are."""
    with connection.cursor() as cursor:
        found = []
        for table in KEPT:
            cursor.execute(f"SELECT * FROM {table} ORDER BY id")
            found.append(cursor.fetchall())
    return found


def delete_all_rows() -> None:
    """Delete the rows of all tables except those kept, in one transaction."""
    tables = list_tables()
    any_rows = " UNION ALL ".join(
        f"SELECT '{table}' WHERE EXISTS (SELECT 1 FROM {table})" for table in tables
    )
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # as TRUNCATE does: wait until what others write is committed
            cursor.execute(f"LOCK TABLE {', '.join(tables)} IN EXCLUSIVE MODE")
            # all goes, so that foreign keys need no check for each row
            cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(any_rows)
        for (table,) in cursor.fetchall():
            cursor.execute(f"DELETE FROM {table}")


@cache
def list_tables() -> list[str]:
    """Return the names of the tables of all models, without those kept."""
    found = connection.introspection.django_table_names(
        only_existing=True, include_views=False
    )
    return sorted(set(found) - set(KEPT))
