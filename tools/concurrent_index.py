"""Migrations of large tables: indexes are built without blocking writes."""

from typing import Any

from django.db import NotSupportedError
from django.db.migrations.operations import AddIndex
from django.db.models import Index


class AddIndexConcurrently(AddIndex):
    """Build an index while others write to the table.

    The migration needs `atomic = False`. On SQLite, which has one writer, the index is
    built as usual. An index that exists is kept; the remains of a failed attempt, which
    PostgreSQL marks as invalid, are dropped first.
    """

    atomic = False

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        connection = schema_editor.connection
        if connection.vendor != "postgresql":
            if has_index(schema_editor, self.index):
                return
            super().database_forwards(app_label, schema_editor, from_state, to_state)
            return
        if connection.in_atomic_block:
            raise NotSupportedError(
                f"The migration that adds {self.index.name} needs `atomic = False`."
            )
        model = to_state.apps.get_model(app_label, self.model_name)
        if not self.allow_migrate_model(connection.alias, model):
            return
        is_valid = find_index(schema_editor, self.index)
        if is_valid is False:
            schema_editor.remove_index(model, self.index, concurrently=True)
        if not is_valid:
            schema_editor.add_index(model, self.index, concurrently=True)

    def describe(self) -> str:
        return f"Concurrently create index {self.index.name} on {self.model_name}"


def has_index(schema_editor: Any, index: Index) -> bool:
    """Whether the SQLite database has an index of this name."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM sqlite_master WHERE name = %s", [index.name])
        return cursor.fetchone() is not None


def find_index(schema_editor: Any, index: Index) -> bool | None:
    """Return whether the index is valid; None if there is no such index."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(
            "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)",
            [schema_editor.quote_name(index.name)],
        )
        found = cursor.fetchone()
    return None if found is None else bool(found[0])
