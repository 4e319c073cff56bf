"""The form of HTTP tools in the admin."""

import re

import pytest
from django.test import Client

from tests.tools.rows import make_user
from tools.models import Credential, Tool

pytestmark = pytest.mark.django_db

ADD = "/admin/tools/tool/add/?kind=http"
SCHEMA = '{"type": "object", "properties": {"id": {"type": "string"}}}'


def signed_in():
    client = Client()
    client.force_login(make_user("admin", is_staff=True, is_superuser=True))
    return client


def filled(**changes):
    return {
        **{"name": "get_order", "slug": "", "description": "d", "enabled": "on"},
        **{"method": "GET", "url": "https://api.example.com/orders/{id}"},
        **{"headers": "Accept: text/plain", "query": "", "body_kind": "arguments"},
        **{"json_body": "", "form_body": "", "pick": "", "max_bytes": ""},
        **{"args_schema": SCHEMA, "credential": "", "hosts": ""},
        **{"effect": "", "approval": "side_effects", "timeout": "5", "retries": "0"},
        **{"on_error": "feed_back", "visibility": "private"},
        **{"revisions-TOTAL_FORMS": "0", "revisions-INITIAL_FORMS": "0"},
        **changes,
    }


def test_a_request_is_made_a_tool():
    response = signed_in().post(ADD, filled())

    assert response.status_code == 302
    tool = Tool.objects.get(name="get_order")
    assert tool.kind == "http"
    assert tool.config == {
        "method": "GET",
        "url": "https://api.example.com/orders/{id}",
        "headers": {"Accept": "text/plain"},
    }
    assert tool.effect == "read"


@pytest.mark.parametrize(
    ("method", "effect"),
    [("POST", "side_effect"), ("PUT", "idempotent"), ("DELETE", "idempotent")],
)
def test_the_effect_comes_from_the_method(method, effect):
    signed_in().post(ADD, filled(method=method))

    assert Tool.objects.get(name="get_order").effect == effect


def test_an_empty_form_shows_no_null():
    form = signed_in().get(ADD).context["adminform"].form

    assert form["json_body"].value() == ""
    assert form["args_schema"].value().shape == "text"


def test_a_stored_request_is_shown_again_as_it_was():
    client = signed_in()
    client.post(
        ADD,
        filled(method="POST", body_kind="json", json_body='{"q": "{id}"}'),
    )
    tool = Tool.objects.get(name="get_order")

    page = client.get(f"/admin/tools/tool/{tool.pk}/change/")
    form = page.context["adminform"].form

    assert form["url"].value() == "https://api.example.com/orders/{id}"
    assert form["headers"].value() == "Accept: text/plain"
    assert form["body_kind"].value() == "fields"
    assert form["json_fields"].value() == "q: {id}"
    assert form["json_body"].value() == '{"q": "{id}"}'


def test_a_flat_body_is_written_a_field_a_line():
    typed = 'q: {id}\nlimit: 5\ndraft: true\nzip: "05"'

    signed_in().post(ADD, filled(method="POST", body_kind="fields", json_fields=typed))

    stored = Tool.objects.get(name="get_order").config["json"]
    assert stored == {"q": "{id}", "limit": 5, "draft": True, "zip": "05"}


def test_a_nested_body_is_shown_as_json():
    client = signed_in()
    body = '{"q": {"text": "{id}"}}'
    client.post(ADD, filled(method="POST", body_kind="json", json_body=body))
    tool = Tool.objects.get(name="get_order")

    page = client.get(f"/admin/tools/tool/{tool.pk}/change/")
    form = page.context["adminform"].form

    assert form["body_kind"].value() == "json"
    assert form["json_body"].value() == body


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ('{"q": 1,\n "r" 2}', "Line 2, column 6: a colon is missing after the name."),
        ('{"q": {id}}', "Line 1, column 8: a name in double quotes is missing, "),
    ],
)
def test_a_mistake_in_the_body_is_reported_as_one_types(typed, message):
    part = signed_in().post("/admin/tools/tool/json/", {"json_body": typed})

    assert message in part.content.decode()


@pytest.mark.parametrize("typed", ["", '{"q": "{id}"}'])
def test_a_body_without_a_mistake_is_left_in_peace(typed):
    part = signed_in().post("/admin/tools/tool/json/", {"json_body": typed})

    assert 'data-tone="bad"' not in part.content.decode()


def test_only_who_sees_tools_has_a_body_checked():
    client = Client()
    client.force_login(make_user("staff", is_staff=True))

    assert client.post("/admin/tools/tool/json/").status_code == 403


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"url": "nowhere"}, "An address begins with https:// and a host."),
        ({"url": "https://{id}/"}, "The host cannot come from an argument."),
        (
            {"url": "https://x.example/{order}"},
            "{order} is not an argument of this tool. Arguments: id.",
        ),
        ({"url": "http://169.254.169.254/latest"}, "clouds hand out credentials"),
        ({"url": "http://metadata.google.internal/x"}, "clouds hand out credentials"),
        ({"headers": "nonsense"}, "is not a pair. Write name: value."),
        ({"headers": "Host: x"}, "cannot be set."),
        ({"args_schema": "{"}, "Not valid JSON."),
        ({"args_schema": '{"type": "text"}'}, "must be an object"),
        ({"pick": "a.b"}, "not a JSON pointer"),
        ({"hosts": "https://x/"}, "is not a host name"),
        ({"body_kind": "json", "json_body": "[1]"}, "GET sends no body."),
        (
            {"body_kind": "json", "json_body": "{"},
            "Not valid JSON. Line 1",
        ),
        (
            {"method": "POST", "body_kind": "fields", "json_fields": "no colon"},
            "is not a pair. Write name: value.",
        ),
        ({"styles": "id=pipeDelimited"}, "“id” is not a query parameter"),
        ({"query": "q={id}", "styles": "q=matrix"}, "Input should be &#x27;space"),
        (
            {"method": "POST", "body_kind": "multipart", "multipart_body": "f=@x"},
            "The content of a file is one placeholder.",
        ),
        (
            {"method": "POST", "body_kind": "multipart", "multipart_body": "f=@{id};x"},
            "“x” is not known. A file can have encoding=base64",
        ),
        (
            {"method": "POST", "body_kind": "fields", "json_fields": "n: 1e999"},
            "a number or a character that cannot be stored.",
        ),
    ],
)
def test_what_is_wrong_is_said_in_words(changes, sentence):
    response = signed_in().post(ADD, filled(**changes))

    assert response.status_code == 200
    assert sentence in response.content.decode()
    assert not Tool.objects.exists()


def test_a_credential_of_other_hosts_is_refused():
    client = signed_in()
    row = Credential.objects.create(
        name="c", owner=make_user("admin"), hosts=["other.example"]
    )

    response = client.post(ADD, filled(credential=row.pk))

    assert "bound to other.example, not to api.example.com" in (
        response.content.decode()
    )


def test_a_multipart_body_is_stored_and_shown_again():
    client = signed_in()
    typed = (
        "note={id}\nhandle=\\@ann\n"
        "photo=@{id};encoding=base64;filename=a b.png;type=image/png"
    )

    client.post(
        ADD,
        filled(
            method="POST",
            body_kind="multipart",
            multipart_body=typed,
            query="f={id}",
            styles="f=deepObject",
        ),
    )

    tool = Tool.objects.get(name="get_order")
    assert tool.config["styles"] == {"f": "deepObject"}
    assert tool.config["multipart"] == {
        "note": "{id}",
        "handle": "@ann",
        "photo": {
            **{"content": "{id}", "encoding": "base64"},
            **{"filename": "a b.png", "content_type": "image/png"},
        },
    }
    page = client.get(f"/admin/tools/tool/{tool.pk}/change/")
    form = page.context["adminform"].form
    assert form["body_kind"].value() == "multipart"
    # PostgreSQL does not keep the order of names.
    assert sorted(form["multipart_body"].value().splitlines()) == sorted(
        typed.splitlines()
    )
    assert form["styles"].value() == "f=deepObject"


def added(client, data):
    """Press the button in the error, and save what the page then shows."""
    page = client.post(ADD, data).content.decode()
    do = re.search('name="args_schema-do" value="(add:[^"]*)"', page)[1]
    again = client.post(ADD, {**data, "args_schema-do": do})
    assert not Tool.objects.exists()
    editor = again.context["adminform"].form["args_schema"].value()
    rows = {
        f"args_schema-{number}-{field}": getattr(row, field)
        for number, row in enumerate(editor.rows)
        for field in ("name", "type")
    }
    shape = {
        "args_schema-shape": editor.shape,
        "args_schema-count": len(editor.rows),
        "args_schema": editor.json,
    }
    assert client.post(ADD, {**data, **rows, **shape}).status_code == 302
    return Tool.objects.get().args_schema["properties"]


@pytest.mark.parametrize(
    ("schema", "names"),
    [
        ({"args_schema": ""}, {"order", "line"}),
        ({"args_schema": SCHEMA}, {"order", "line", "id"}),
        (
            {"args_schema-shape": "rows", "args_schema-count": "0"},
            {"order", "line"},
        ),
    ],
)
def test_placeholders_without_an_argument_offer_to_add_it(schema, names):
    url = "https://x.example/{order}/{line}"

    assert added(signed_in(), filled(url=url, **schema)).keys() == names


def test_the_text_input_stays_an_argument_beside_those_added():
    url = "https://x.example/{order}?q={input}"

    schema = {"args_schema-shape": "text", "args_schema": ""}
    assert added(signed_in(), filled(url=url, **schema)).keys() == {"input", "order"}


def test_the_offer_to_add_an_argument_is_no_way_into_the_page():
    url = "https://x.example/{a}"
    page = signed_in().post(ADD, filled(url=url, headers="X: {<script>}"))

    assert "<script>}" not in page.content.decode()
