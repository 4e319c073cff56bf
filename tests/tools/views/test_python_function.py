"""A Python tool whose code is a function: its arguments are read from it."""

import json

import pytest
from django.test import Client

from tests.tools.rows import make_tool, make_user
from tools.models import Tool

pytestmark = pytest.mark.django_db

CREATE = "/tools/new/python/"
PART = "/admin/tools/tool/schema/?part=function"
AGE = "def age(born: int, names: list[str] = []):\n    return 2026 - born"
AGE_SCHEMA = {
    "type": "object",
    "properties": {
        "born": {"type": "integer"},
        "names": {"type": "array", "items": {"type": "string"}, "default": []},
    },
    "required": ["born"],
}
FORM = {
    **{"name": "age", "slug": "age", "description": "", "code": AGE},
    **{"memory_mb": "64", "interpreter": "monty", "effect": "read"},
    **{"approval": "never", "timeout": "5", "retries": "0", "on_error": "feed_back"},
    **{"visibility": "private", "args_schema-shape": "text", "seen": "1"},
}
"""The form of a new tool as a browser sends it."""

ROWS = {
    **{"args_schema-shape": "rows", "args_schema-count": "1"},
    **{"args_schema-0-name": "input", "args_schema-0-type": "string"},
}


@pytest.fixture
def client():
    client = Client()
    client.force_login(make_user("admin", is_staff=True, is_superuser=True))
    return client


def tried(client, **typed):
    part = client.post(
        f"{CREATE}try/", {**FORM, **typed}, headers={"HX-Request": "true"}
    )
    return part.context["pane"]


def test_a_new_tool_is_called_with_the_arguments_of_its_function(client):
    pane = tried(client, **{"arg-born": "1990"})

    assert list(pane.arguments.fields) == ["born", "names"]
    assert pane.result.value_text == "36"


def test_the_defaults_of_typed_code_are_shown_before_it_is_saved(client):
    code = (
        "def f(a: str = 'x', b: int = 2, c: bool = True, d: list[str] = ['y', 'z'], "
        "e: dict = {'k': 1}, g: int = 3): return a"
    )

    pane = tried(client, code=code, **{"arg-g": "", "refresh": "1"})

    values = {field.label: str(field.value()) for field in pane.arguments}
    lists = {"d": "y\nz", "e": '{\n  "k": 1\n}'}
    assert values == {"a": "x", "b": "2", "c": "Yes", "g": "", **lists}


def test_a_new_tool_is_saved_with_the_arguments_of_its_function(client):
    assert client.post(CREATE, FORM).status_code == 302

    assert Tool.objects.get().args_schema == AGE_SCHEMA


def test_the_arguments_follow_the_function_while_no_others_are_defined(client):
    client.post(CREATE, FORM)
    page = client.get("/tools/age/").content.decode()
    assert "Read from the function" in page
    changed = {**FORM, "args_schema-shape": "function", "code": "def age(): return 1"}

    client.post("/tools/age/", changed)

    assert Tool.objects.get().args_schema == {"type": "object", "properties": {}}


def test_defined_arguments_stay_as_they_are(client):
    described = {**AGE_SCHEMA, "additionalProperties": False}
    make_tool(
        **{"name": "age", "slug": "age", "kind": "python", "config": {"code": AGE}},
        args_schema=described,
        owner=make_user("admin"),
    )

    page = client.get("/tools/age/").content.decode()

    assert 'name="args_schema-shape" value="rows"' in page
    assert "Read from the function" in page  # the button that goes back


def test_other_arguments_than_those_of_the_function_are_refused(client):
    page = client.post(CREATE, {**FORM, **ROWS}).content.decode()

    assert "The function age() requires the argument “born”." in page
    assert "Add argument born" in page
    assert not Tool.objects.exists()


def test_the_editor_shows_the_arguments_of_typed_code(client):
    part = client.post(PART, FORM).content.decode()

    assert "Read from the function" in part
    assert "<code>names</code> list of texts" in part


@pytest.mark.parametrize("code", ["input.upper()", "def age(born"])
def test_the_editor_stays_while_typed_code_has_no_other_arguments(client, code):
    assert client.post(PART, {**FORM, "code": code}).status_code == 204


def test_the_arguments_of_a_try_stay_while_the_code_cannot_be_read(client):
    read = {"args_schema-shape": "function", "args_schema": '{"properties":{"a":{}}}'}

    pane = tried(client, code="def age(a", **read)

    assert [flaw.field.name for flaw in pane.flaws] == ["code"]
    assert list(pane.arguments.fields) == ["a"]


def test_the_arguments_of_a_function_can_be_edited(client):
    read = {"args_schema-shape": "function", "args_schema": json.dumps(AGE_SCHEMA)}
    edit = {"args_schema-do": "rows"}

    part = client.post(
        "/admin/tools/tool/schema/", {**FORM, **read, **edit}
    ).content.decode()

    assert 'name="args_schema-0-name" value="born"' in part
    assert 'name="args_schema-1-name" value="names"' in part


def test_a_function_without_named_arguments_is_refused_at_its_line(client):
    page = client.post(CREATE, {**FORM, "code": "async def f():\n    pass"})

    assert "Line 1: define the function with def, not with async def." in page.text
    assert 'data-error-line="1"' in page.text


def test_code_without_a_result_is_saved_with_a_warning(client):
    typed = {**FORM, "code": "x = input"}

    assert tried(client, **typed).no_result
    page = client.post(CREATE, typed, follow=True)

    assert Tool.objects.exists()
    assert "The result is always empty" in page.text


def test_a_refused_form_names_what_is_unsaved(client):
    client.post(CREATE, {**FORM, "code": f"\r\n{AGE}".replace("\n", "\r\n")})
    typed = {**FORM, "code": AGE, "args_schema-shape": "function", "memory_mb": "1"}

    page = client.post("/tools/age/", {**typed, "description": "New."}).text

    assert 'data-changed="description code memory_mb"' in page
