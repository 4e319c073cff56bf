"""The form of a tool that queries a database."""

from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.utils.translation import gettext_lazy as _

from tools.errors import Interrupted, ToolFailed
from tools.forms.schema import SchemaField, offer_arguments
from tools.forms.tool import ToolForm
from tools.kinds.config_checks import describe_unknown_argument
from tools.kinds.sql import FREE_QUERY_SCHEMA, MAX_QUERY, MAX_ROWS, describe_tables
from tools.net.deadline import Deadline
from tools.sql.connections import parse_sql_connections
from tools.sql.postgres_query import find_argument_names
from tools.typed_generics import StrOrPromise

TABLES_TIMEOUT = 5.0
MAX_TABLES = 20_000
"""Characters of the list of tables shown to the model."""


class SqlToolForm(ToolForm):
    """A listed database, and a fixed query or none."""

    kind: ClassVar[str] = "sql"
    kind_label: ClassVar[StrOrPromise] = _("SQL query")
    kind_section_title: ClassVar[StrOrPromise] = _("Query")
    kind_fields: ClassVar[tuple[str | tuple[str, ...], ...]] = (
        *("connection", "query", "args_schema", "max_rows"),
    )

    connection = forms.ChoiceField(
        label=_("Database"),
        help_text=_(
            "An operator lists databases in AGENTSITE_SQL_CONNECTIONS, preferably with "
            "a read-only role."
        ),
    )
    query = forms.CharField(
        label=_("Query"),
        required=False,
        max_length=MAX_QUERY,
        widget=forms.Textarea(
            attrs={"rows": 6, "class": "mono", "spellcheck": "false"}
        ),
        help_text=_(
            "One SELECT with :name for arguments. Leave empty to let the model write "
            "the query; it sees the tables as they are when you save."
        ),
    )
    max_rows = forms.IntegerField(
        label=_("Maximum rows"), min_value=1, max_value=MAX_ROWS, initial=100
    )
    args_schema = SchemaField(label=_("Arguments"), required=False)

    class Meta(ToolForm.Meta):
        fields = (*ToolForm.Meta.fields, "args_schema")

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        field = self.fields.get("connection")
        if isinstance(field, forms.ChoiceField):
            names = list(parse_sql_connections(settings.SQL_CONNECTIONS))
            none = [("", str(_("No databases are listed")))]
            field.choices = [(name, name) for name in names] or none
            if names and self.instance.pk and self.current_connection() not in names:
                field.choices = [("", str(_("Select one"))), *field.choices]
        self.set_initial_from_config("connection", "query", "max_rows")
        self.default_to_read_only()

    def current_connection(self) -> str:
        return str(self.instance.config.get("connection", ""))

    def clean_query(self) -> str:
        """Undo the line breaks of browsers."""
        return str(self.cleaned_data["query"]).replace("\r\n", "\n")

    def clean(self) -> dict[str, Any] | None:
        """Check the names in the query; without a query, load the tables."""
        cleaned = super().clean() or {}
        if self.errors:
            return cleaned
        if cleaned.get("query"):
            self.check_argument_names(cleaned)
        else:
            cleaned["args_schema"] = FREE_QUERY_SCHEMA
            self.load_tables(cleaned["connection"])
        return cleaned

    def check_argument_names(self, cleaned: dict[str, Any]) -> None:
        schema = cleaned.get("args_schema")
        if schema is None:
            schema = cleaned["args_schema"] = {"type": "object", "properties": {}}
        known = set(schema.get("properties", {}))
        missing = sorted(find_argument_names(cleaned["query"]) - known)
        for name in missing:
            sentence = describe_unknown_argument(f":{name}", known)
            wanted = missing if name == missing[0] else []
            self.add_error("query", offer_arguments(sentence, wanted))

    def load_tables(self, connection: str) -> None:
        """Store the tables for the model, or show why the database did not answer."""
        try:
            tables = describe_tables(
                connection, deadline=Deadline(seconds=TABLES_TIMEOUT)
            )
        except (ToolFailed, Interrupted) as error:
            self.add_error("connection", str(error))
        else:
            self.instance.config["tables"] = tables[:MAX_TABLES]

    def config(self) -> dict[str, Any]:
        return {
            "connection": self.cleaned_data["connection"],
            "query": self.cleaned_data.get("query", ""),
            "max_rows": self.cleaned_data["max_rows"],
        }
