"""The form of SQL tools in the admin, and the operator's list."""

import sqlite3
from contextlib import closing

import pytest
from django.test import Client

from tests.tools.rows import make_user
from tools.definition.freeze import freeze_tool
from tools.models import Tool
from tools.sql.connections import parse_sql_connections

ADD = "/admin/tools/tool/add/?kind=sql"


@pytest.fixture(autouse=True)
def _shop(settings, tmp_path):
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection, connection:
        connection.execute("CREATE TABLE orders (id INTEGER, who TEXT)")
    settings.SQL_CONNECTIONS = f"shop=sqlite:///{tmp_path}/shop.db gone=sqlite:////no/x"


def posted(**changes):
    client = Client()
    client.force_login(make_user("admin", is_staff=True, is_superuser=True))
    form = {
        **{"name": "orders", "slug": "", "description": "Orders.", "enabled": "on"},
        **{"connection": "shop", "query": "", "args_schema": "", "max_rows": "50"},
        **{"effect": "read", "approval": "never", "timeout": "5", "retries": "0"},
        **{"on_error": "feed_back", "visibility": "private"},
        **{"revisions-TOTAL_FORMS": "0", "revisions-INITIAL_FORMS": "0"},
        **changes,
    }
    return client.post(ADD, form).content.decode()


@pytest.mark.django_db
def test_a_model_that_writes_queries_is_shown_the_tables():
    posted()

    spec = freeze_tool(Tool.objects.get(name="orders"))
    assert spec.description == "Orders.\n\nTables:\norders(id INTEGER, who TEXT)"
    assert spec.args_schema["required"] == ["query"]


@pytest.mark.django_db
def test_a_fixed_query_has_the_arguments_of_its_schema():
    schema = '{"properties": {"who": {"type": "string"}}}'
    posted(query="SELECT id FROM orders WHERE who = :who", args_schema=schema)

    spec = freeze_tool(Tool.objects.get(name="orders"))
    assert set(spec.args_schema["properties"]) == {"who"}
    assert spec.description == "Orders."


@pytest.mark.django_db
def test_lines_end_as_they_did_before_a_browser_sent_them():
    posted(query="SELECT id\r\nFROM orders", description="One.\r\nTwo.")

    tool = Tool.objects.get()
    assert tool.config["query"] == "SELECT id\nFROM orders"
    assert tool.description == "One.\nTwo."


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"query": "SELECT :who"},
            ":who is not an argument of this tool, which has none.",
        ),
        ({"connection": "other"}, "is not one of the available choices"),
        ({"connection": "gone"}, "The query failed: unable to open database file"),
        ({"max_rows": "0"}, "1 or more."),
    ],
)
def test_what_is_wrong_is_said_in_words(changes, sentence):
    assert sentence in posted(**changes)
    assert not Tool.objects.exists()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("shop", "name=URL"),
        ("a b=postgresql://x/y", "name=URL"),
        ("shop=mysql://ann:s3cret@x/y", "neither postgresql:// nor sqlite://"),
        ("shop=sqlite://", "names no file"),
    ],
)
def test_a_wrong_list_is_a_sentence_without_its_secrets(text, why):
    with pytest.raises(ValueError, match=why) as caught:
        parse_sql_connections(text)

    assert "s3cret" not in str(caught.value)


@pytest.mark.django_db
def test_a_form_without_databases_says_that_the_operator_listed_none(settings):
    settings.SQL_CONNECTIONS = ""

    page = posted(connection="")

    assert "No databases are listed" in page
    assert not Tool.objects.exists()
