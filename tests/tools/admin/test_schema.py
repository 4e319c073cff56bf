"""The editor of a tool's arguments in the admin, without a script."""

import pytest
from django.test import Client

from tests.support.html import Fields
from tests.tools.admin.test_tools import page, signed_in
from tests.tools.forms.test_python_tool import ADD, filled
from tests.tools.rows import make_tool, make_user
from tests.tools.schema.test_rows import FULL
from tools.models import Tool

pytestmark = pytest.mark.django_db

PART = "/admin/tools/tool/schema/"
ROWS = {
    **{"args_schema-shape": "rows", "args_schema-count": "2"},
    **{"args_schema-0-name": "a", "args_schema-0-type": "integer"},
    **{"args_schema-1-name": "b", "args_schema-1-type": "string"},
    "args_schema-1-required": "on",
}


def read_schema_fields(page):
    """Return what a browser would send of the editor's fields."""
    return {
        name: values[-1]
        for name, values in Fields(page).sent.items()
        if name.startswith("args_schema")
    }


def without(fields, *names):
    return {name: value for name, value in fields.items() if name not in names}


def schema_after(post):
    signed_in().post(ADD, {**without(filled(), "args_schema"), **post})
    return Tool.objects.get().args_schema


@pytest.mark.parametrize("schema", [FULL, {"properties": {"a": True}}, None])
def test_what_is_shown_and_sent_back_is_what_was_stored(schema):
    client = signed_in()
    tool = make_tool(owner=make_user("admin"), kind="python", args_schema=schema)
    address = f"/admin/tools/tool/{tool.pk}/change/"
    sent = read_schema_fields(page(client, address))
    given = without(filled(), "args_schema")

    form = client.get(address).context["adminform"].form
    field = form.fields["args_schema"]
    typed = field.widget.value_from_datadict(sent, {}, "args_schema")
    client.post(address, {**given, **sent, "description": "new", "code": "1"})

    assert not field.has_changed(schema, typed)
    tool.refresh_from_db()
    assert (tool.description, tool.args_schema) == ("new", schema)


def test_rows_are_saved_as_a_schema():
    assert schema_after(ROWS) == {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
        "required": ["b"],
    }


def test_json_alone_is_taken():
    assert schema_after({"args_schema": '{"properties": {"a": {}}}'}) == {
        "properties": {"a": {}}
    }


def test_one_text_has_no_schema():
    assert schema_after({"args_schema-shape": "text"}) is None


@pytest.mark.parametrize(
    ("action", "shown"),
    [
        ("add", 'name="args_schema-2-name"'),
        ("remove-0", 'name="args_schema-0-name" value="b"'),
        ("up-1", 'name="args_schema-0-name" value="b"'),
        ("json", "&quot;properties&quot;: {"),
        ("text", "Takes a single text input"),
    ],
)
def test_a_button_changes_the_page_and_saves_nothing(action, shown):
    client = signed_in()
    given = {**without(filled(), "args_schema"), **ROWS, "args_schema-do": action}

    saved_as_typed = client.post(ADD, given).content.decode()
    part = client.post(PART, given).content.decode()

    assert shown in saved_as_typed
    assert shown in part
    assert "Not saved" in saved_as_typed
    assert not Tool.objects.exists()


def test_what_is_wrong_is_said_while_one_types():
    wrong = {**ROWS, "args_schema-0-default": "x"}

    part = signed_in().post(f"{PART}?part=says", wrong).content.decode()

    assert "Argument “a”: default value “x” is not valid JSON" in part


def test_the_part_is_for_those_who_may_see_tools():
    make_user("bob", is_staff=True)
    bob = Client()
    bob.force_login(make_user("bob"))

    assert bob.post(PART, ROWS).status_code == 403
    assert Client().post(PART, ROWS).status_code == 302
    assert signed_in().get(PART).status_code == 405
