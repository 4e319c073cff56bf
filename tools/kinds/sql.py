"""Tools that read a database: a fixed query, or one the model writes."""

from typing import Any

from django.conf import settings
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tools.errors import ToolFailed
from tools.kinds.call import PreparedCall
from tools.net.deadline import Deadline
from tools.sql.connections import find_sql_connection
from tools.sql.postgres import describe_postgres_tables, query_postgres
from tools.sql.sqlite import describe_sqlite_tables, query_sqlite

MAX_ROWS = 1_000
MAX_QUERY = 20_000
"""Characters."""

FREE_QUERY_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "query": {
            "type": "string",
            "description": "One SELECT statement. Nothing can be changed.",
        }
    },
    "required": ["query"],
    "additionalProperties": False,
}
"""Arguments of a tool whose query the model writes."""


class SqlConfig(BaseModel):
    """The definition, as it is stored and frozen."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    connection: str
    """A name in the operator's list."""
    query: str = Field(default="", max_length=MAX_QUERY)
    """With `:name` for arguments; empty if the model writes it."""
    max_rows: int = Field(default=100, ge=1, le=MAX_ROWS)
    tables: str = ""
    """Tables and columns, shown to a model that writes queries."""


def call_sql(call: PreparedCall) -> Any:
    """Ask the database, in a transaction that can only read."""
    try:
        config = SqlConfig.model_validate(call.spec.config)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ToolFailed(
            f"This tool is not configured correctly: {first['msg']}."
        ) from None
    found = find_sql_connection(config.connection, settings.SQL_CONNECTIONS)
    given = call.tool_input if isinstance(call.tool_input, dict) else {}
    query, values = config.query, given
    if not query:
        query = str(given.get("query") or call.tool_input)
        values = {}
    if found.is_sqlite:
        return query_sqlite(
            found.path, query, values, limit=config.max_rows, deadline=call.deadline
        )
    return query_postgres(
        found.url, query, values, limit=config.max_rows, deadline=call.deadline
    )


def describe_tables(name: str, *, deadline: Deadline) -> str:
    """Return the tables of a database in words; raise `ToolFailed`."""
    found = find_sql_connection(name, settings.SQL_CONNECTIONS)
    if found.is_sqlite:
        return describe_sqlite_tables(found.path, deadline=deadline)
    return describe_postgres_tables(found.url, deadline=deadline)
