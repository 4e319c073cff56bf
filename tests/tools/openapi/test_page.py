"""Importing OpenAPI documents in the admin."""

import json
import random

import pytest
from django.contrib.admin.models import LogEntry
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from django.test import Client
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from tests.fakes.outbreak import outbreaks
from tests.tools.openapi.test_import import SHOP
from tests.tools.openapi.test_operations import (
    FILES,
    FORECAST,
    NEWS,
    PHONE,
    VECTORS,
    VETS,
)
from tests.tools.rows import make_user
from tools.audit.entry import AuditEntry
from tools.definition.freeze import freeze_tool
from tools.definition.save import serialize_definition
from tools.models import Credential, Tool

pytestmark = pytest.mark.django_db

PAGE = "/admin/tools/tool/import/"


def signed_in():
    client = Client()
    client.force_login(make_user("admin", is_staff=True, is_superuser=True))
    return client


def test_a_document_shows_its_operations_and_makes_nothing():
    page = signed_in().post(PAGE, {"document": SHOP}).content.decode()

    assert "GET /orders/{order-id}" in page
    assert 'class="tag">\n                read-only</span>' in page
    assert 'data-tone="need">\n                side effect</span>' in page
    assert "Not possible: its body is image/png" in page
    assert not Tool.objects.exists()


def test_inputs_that_a_tool_does_not_send_are_named():
    parameters = [{"name": "sid", "in": "cookie"}, {"name": "q", "in": "query"}]
    paths = {"/x": {"get": {"parameters": parameters}}}
    servers = [{"url": "https://a.example"}]
    text = json.dumps({"openapi": "3.1.0", "servers": servers, "paths": paths})

    page = signed_in().post(PAGE, {"document": text}).content.decode()

    assert "Not sent: the cookie “sid”" in page


def test_a_file_can_be_given():
    file = SimpleUploadedFile("shop.yaml", SHOP.encode())

    assert "getOrder" in signed_in().post(PAGE, {"file": file}).content.decode()


def test_chosen_operations_become_tools_that_are_switched_off():
    client = signed_in()
    row = Credential.objects.create(
        name="shop", owner=make_user("admin"), hosts=["eu.shop.example"]
    )

    chosen = ["GET /orders/{order-id}", "POST /orders", "PUT /files", "GET /nothing"]
    client.post(
        PAGE, {"document": SHOP, "operation": chosen, "credential": row.pk, "choose": 1}
    )

    made = {tool.name: tool for tool in Tool.objects.all()}
    assert set(made) == {"getOrder", "create_order"}
    assert not any(tool.enabled for tool in made.values())
    assert {tool.credential for tool in made.values()} == {row}
    assert made["getOrder"].revisions.get().note == "From the OpenAPI document 'Shop'"


def test_every_call_of_an_imported_write_requires_approval():
    paths = {"/x": {m: {} for m in ("get", "head", "post", "put", "patch", "delete")}}
    servers = [{"url": "https://a.example"}]
    text = json.dumps({"openapi": "3.1.0", "servers": servers, "paths": paths})

    signed_in().post(PAGE, {"document": text, "all": "1"})

    asks = {
        tool.config["method"]: freeze_tool(tool).asks for tool in Tool.objects.all()
    }
    assert asks == {
        **{"GET": False, "HEAD": False},
        **{"POST": True, "PUT": True, "PATCH": True, "DELETE": True},
    }


def test_choosing_nothing_is_said():
    page = signed_in().post(PAGE, {"document": SHOP, "choose": "1"}).content.decode()

    assert "Select at least one operation." in page


def kept_after(client, given):
    """Return the hidden fields that the page of operations sends back."""
    context = client.post(PAGE, given).context
    return {"kept": context["kept"], "base": given.get("base", ""), "choose": "1"}


def test_the_page_of_operations_keeps_the_document_by_itself():
    client = signed_in()
    kept = kept_after(client, {"document": SHOP})

    client.post(PAGE, {**kept, "operation": ["GET /orders/{order-id}"]})

    assert Tool.objects.get().name == "getOrder"


def test_all_that_are_possible_are_made_at_once():
    client = signed_in()
    kept = kept_after(client, {"document": SHOP})

    assert b"Create all 5 tools" in client.post(PAGE, kept).content
    client.post(PAGE, {**kept, "all": "1"})

    assert Tool.objects.count() == 5
    assert "PUT" not in {tool.config["method"] for tool in Tool.objects.all()}


@pytest.mark.parametrize("kept", ["x", "e30:1:x", ".eJw:1tAbcd:" + "x" * 43])
def test_a_kept_document_that_we_did_not_write_is_asked_for_again(kept):
    page = signed_in().post(PAGE, {"kept": kept, "all": "1"}).content.decode()

    assert "Paste a document or select a file." in page
    assert not Tool.objects.exists()


def test_a_document_that_cannot_be_kept_is_refused_with_a_sentence():
    noise = random.Random(3).randbytes(2_000_000).hex()
    text = json.dumps({"openapi": "3.0.0", "paths": {}, "x": noise})
    file = SimpleUploadedFile("noise.json", text.encode())

    page = signed_in().post(PAGE, {"file": file}).content.decode()

    assert "Reduce it to the paths you need" in page


def test_a_server_that_tools_may_not_reach_is_said_before_tools_are_made():
    text = SHOP.replace("https://{region}.shop.example/v1/", "http://169.254.169.254")

    page = signed_in().post(PAGE, {"document": text}).content.decode()

    assert "Calls to &#x27;169.254.169.254&#x27; are not allowed" in page


def test_each_tool_that_is_made_has_its_revision_and_its_entries():
    client = signed_in()
    Tool.objects.create(name="get_order", slug="getorder", owner=make_user("admin"))

    client.post(PAGE, {**kept_after(client, {"document": SHOP}), "all": "1"})

    made = Tool.objects.filter(kind="http")
    assert made.get(name="getOrder").slug == "getorder-2"
    for tool in made:
        assert tool.revisions.get().body == serialize_definition(tool)
        entry = AuditEntry.objects.about(tool, noun="tool").get()
        assert (entry.action, entry.by, entry.way) == ("made", "admin", "page")
        assert entry.changes["config"] == [None, tool.config]
    assert LogEntry.objects.filter(change_message="Imported").count() == made.count()


def test_hundreds_of_tools_take_as_many_queries_as_one(django_assert_max_num_queries):
    paths = {f"/x{n}": {"get": {}} for n in range(300)}
    servers = [{"url": "https://a.example"}]
    text = json.dumps({"openapi": "3.1.0", "servers": servers, "paths": paths})
    client = signed_in()
    kept = kept_after(client, {"document": text})

    with django_assert_max_num_queries(40):
        client.post(PAGE, {**kept, "all": "1"})

    assert Tool.objects.count() == 300


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "Paste a document or select a file."),
        ({"document": "{"}, "neither JSON nor YAML"),
        ({"document": SHOP, "base": "nowhere at all"}, "Enter a valid URL."),
    ],
)
def test_what_is_wrong_is_said_at_its_field(given, sentence):
    assert sentence in signed_in().post(PAGE, given).content.decode()


def test_only_those_who_may_add_tools_import():
    client = Client()
    client.force_login(make_user("bob", is_staff=True))

    assert client.get(PAGE).status_code == 403


MAKES = (PHONE, FORECAST, VETS, VECTORS, FILES, NEWS)
HOSTILE = st.sampled_from(
    [
        *("$ref: http://a.example/x.yaml", "$ref: file:///etc/passwd"),
        *("!!python/object/apply:os.system [true]", "&a [*a]", "$ref: '#/paths'"),
        *("pattern: (a+)+$", "http://169.254.169.254", "{x}", "{}", "[]", "null"),
        *("-", "\0", "\t", "🦆", '"', "'"),
        *("maxItems: 1e999", "required: {}", "type: [array, null, 7]", "in: cookie"),
    ]
)


@settings(
    max_examples=60,
    derandomize=True,  # a find is mended, not met by chance
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    text=st.sampled_from(MAKES),
    cuts=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 9), HOSTILE), max_size=3),
)
def test_no_document_breaks_out(text, cuts):
    for place, length, junk in cuts:
        at = int(place * len(text))
        text = text[:at] + junk + text[at + length :]
    given = {"document": text, "base": "https://a.example"}
    with transaction.atomic():
        client = signed_in()
        with outbreaks() as seen:
            shown = client.post(PAGE, given)
            keys = [one.key for one in shown.context.get("operations", ())]
            made = client.post(PAGE, {**given, "operation": keys})
        event(f"made {Tool.objects.count()} tools")
        assert {shown.status_code, made.status_code} <= {200, 302}
        assert seen == []
        assert not Tool.objects.filter(enabled=True).exists()
        assert not Tool.objects.exclude(visibility="private").exists()
        transaction.set_rollback(True)
