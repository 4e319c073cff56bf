"""The form of a tool that reads a database."""

from typing import Any, ClassVar

from django import forms
from django.conf import settings

from tools.errors import Interrupted, ToolFailed
from tools.forms.schema import SchemaField
from tools.forms.tool import ToolForm
from tools.kinds.sql import FREE_SCHEMA, MAX_QUERY, MAX_ROWS, tables_of
from tools.sql.connections import read_connections
from tools.sql.postgres_text import names_in_query
from tools.watch import Watch

LOOK_SECONDS = 5.0
MAX_TABLES = 20_000
"""Characters of table names that a model is shown."""


class SqlToolForm(ToolForm):
    """A database of the operator's list, and a query or none."""

    kind: ClassVar[str] = "sql"
    word: ClassVar[str] = "SQL query"
    own_title: ClassVar[str] = "What it asks"
    own_fields: ClassVar[tuple[str | tuple[str, ...], ...]] = (
        *("connection", "query", "args_schema", "max_rows"),
    )

    connection = forms.ChoiceField(
        label="Database",
        help_text="An operator names databases in AGENTSITE_SQL_CONNECTIONS. Use a "
        "role that may only read.",
    )
    query = forms.CharField(
        required=False,
        max_length=MAX_QUERY,
        widget=forms.Textarea(
            attrs={"rows": 6, "class": "mono", "spellcheck": "false"}
        ),
        help_text="One SELECT, with :name for arguments. Empty: the model writes it, "
        "and is shown the tables as they are when you save.",
    )
    max_rows = forms.IntegerField(
        label="Rows at most", min_value=1, max_value=MAX_ROWS, initial=100
    )
    args_schema = SchemaField(label="Arguments", required=False)

    class Meta(ToolForm.Meta):
        fields = (*ToolForm.Meta.fields, "args_schema")

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        field = self.fields.get("connection")
        if isinstance(field, forms.ChoiceField):
            names = list(read_connections(settings.SQL_CONNECTIONS))
            none = [("", "the operator listed none")]
            field.choices = [(name, name) for name in names] or none
            if names and self.instance.pk and self.named() not in names:
                field.choices = [("", "choose one"), *field.choices]
        self.begin_with_config("connection", "query", "max_rows")
        self.begin_as_reading()

    def named(self) -> str:
        """Return the database the stored tool names."""
        return str(self.instance.config.get("connection", ""))

    def clean_query(self) -> str:
        """Return it with lines that end as they did before a browser sent it."""
        return str(self.cleaned_data["query"]).replace("\r\n", "\n")

    def clean(self) -> dict[str, Any] | None:
        """Check the names in the query, and look at the tables where it is free."""
        cleaned = super().clean() or {}
        if self.errors:
            return cleaned
        if cleaned.get("query"):
            self.check_names(cleaned)
        else:
            cleaned["args_schema"] = FREE_SCHEMA
            self.look(cleaned["connection"])
        return cleaned

    def check_names(self, cleaned: dict[str, Any]) -> None:
        """Refuse names without an argument."""
        schema = cleaned.get("args_schema")
        if schema is None:
            schema = cleaned["args_schema"] = {"type": "object", "properties": {}}
        known = set(schema.get("properties", {}))
        for name in sorted(names_in_query(cleaned["query"]) - known):
            self.add_error("query", f":{name} is no argument of this tool.")

    def look(self, connection: str) -> None:
        """Keep the tables for the model; say where the database cannot be asked."""
        try:
            tables = tables_of(connection, watch=Watch(seconds=LOOK_SECONDS))
        except (ToolFailed, Interrupted) as error:
            self.add_error("connection", str(error))
        else:
            self.instance.config["tables"] = tables[:MAX_TABLES]

    def config(self) -> dict[str, Any]:
        """Return database, query and limit."""
        return {
            "connection": self.cleaned_data["connection"],
            "query": self.cleaned_data.get("query", ""),
            "max_rows": self.cleaned_data["max_rows"],
        }
