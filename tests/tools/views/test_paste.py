"""Creating a tool from a pasted request."""

import json

import pytest
from django.test import Client

from tests.tools.http_server import Answer, serve
from tests.tools.rows import make_user
from tools.models import Tool, UploadedDocument

pytestmark = pytest.mark.django_db

PATH = "/tools/new/from-request/"


@pytest.fixture
def client():
    one = Client()
    one.force_login(make_user("admin", is_staff=True, is_superuser=True))
    return one


def test_a_command_fills_the_form_and_the_test_and_creates_nothing(client):
    text = """curl -H 'Authorization: Bearer abc' a.example/x --json '{"n": 7}'"""

    response = client.post(PATH, {"text": text})

    page, form = response.content.decode(), response.context["form"]
    assert form["url"].value() == "https://a.example/x"
    assert form["method"].value() == "POST"
    assert response.context["pane"].arguments["n"].value() == 7
    assert "because it is secret: Authorization." in page
    assert "Bearer abc" not in page
    assert 'action="/tools/new/http/"' in page
    assert not Tool.objects.exists()


def test_an_unreadable_text_is_shown_again_with_the_reason(client):
    page = client.post(PATH, {"text": "hello"}).content.decode()

    assert "neither curl nor https://" in page
    assert ">\nhello</textarea>" in page


def test_a_command_that_is_too_long_is_refused_and_not_cut(client):
    text = f"curl https://a.example/x -d a={'b' * 200_000}"

    page = client.post(PATH, {"text": text}).content.decode()

    assert "The text is longer than 200,000 characters." in page
    assert "maxlength" not in client.get(PATH).content.decode()


def test_an_empty_header_and_the_body_of_delete_can_be_saved(client):
    text = """curl -X DELETE a.example/x -H 'X-Empty;' --json '{"n": 7}'"""

    form = client.post(PATH, {"text": text}).context["form"]
    given = {one.html_name: one.value() for one in form if one.value() is not None}
    n = {"name": "n", "type": "integer", "required": "on"}
    rows = {f"args_schema-0-{name}": value for name, value in n.items()}
    typed = given | rows | {"args_schema-shape": "rows", "args_schema-count": "1"}
    client.post("/tools/new/http/", typed)

    config = Tool.objects.get().config
    assert (config["headers"], config["json"]) == ({"X-Empty": ""}, {"n": "{n}"})


def test_the_url_of_a_document_leads_to_its_operations(client, settings):
    settings.PRIVATE_HOSTS, settings.OWN_PORTS = "tool=127.0.0.1", []
    shop = {"openapi": "3.1.0", "info": {"title": "Shop"}, "paths": {}}
    with serve(lambda got: Answer(shop)) as server:
        response = client.post(PATH, {"text": f"{server.url}/openapi.json"})

    upload = UploadedDocument.objects.get()
    assert response.headers["Location"] == f"/admin/tools/tool/import/{upload.pk}/"


def test_other_json_at_a_url_becomes_a_tool(client, settings):
    settings.PRIVATE_HOSTS, settings.OWN_PORTS = "tool=127.0.0.1", []
    with serve(lambda got: Answer(json.dumps({"a": 1}).encode())) as server:
        response = client.post(PATH, {"text": f"{server.url}/data.json"})

    assert response.context["form"]["url"].value() == f"{server.url}/data.json"


def test_the_guard_holds_for_documents(client, settings):
    settings.PRIVATE_HOSTS, settings.OWN_PORTS = "", []
    with serve(lambda got: Answer({"openapi": "3.1.0"})) as server:
        client.post(PATH, {"text": f"{server.url}/openapi.json"})

        assert server.got == []
    assert not UploadedDocument.objects.exists()
