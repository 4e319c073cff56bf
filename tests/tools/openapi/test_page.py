"""Importing OpenAPI documents in the admin."""

import json
from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from django.test import Client
from django.utils import timezone
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
from tools.models import Credential, Tool, UploadedDocument
from tools.openapi.uploads import MAX_UPLOADS

pytestmark = pytest.mark.django_db

PAGE = "/admin/tools/tool/import/"
UNSENDABLE = {"content": {"image/png": {}}}


def signed_in():
    client = Client()
    client.force_login(make_user("admin", is_staff=True, is_superuser=True))
    return client


def upload(client, **given):
    """Upload a document; return the address of the page of its operations."""
    answer = client.post(PAGE, {"document": SHOP, **given})
    assert answer.status_code == 302
    return answer.headers["Location"]


def shown(client, **given):
    """Return the page of operations of a document."""
    return client.get(upload(client, **given)).content.decode()


def listing(paths, **more):
    """Return a document with these paths."""
    servers = [{"url": "https://a.example"}]
    document = {"openapi": "3.1.0", "servers": servers, "paths": paths, **more}
    return json.dumps(document)


def test_a_document_shows_its_operations_and_makes_nothing():
    page = shown(signed_in())

    assert "GET /orders/{order-id}" in page
    assert 'class="tag">\n                read-only</span>' in page
    assert 'data-tone="need">\n                side effect</span>' in page
    assert "Not possible: its body is image/png" in page
    assert not Tool.objects.exists()


def test_inputs_that_a_tool_does_not_send_are_named():
    parameters = [{"name": "sid", "in": "cookie"}, {"name": "q", "in": "query"}]
    paths = {"/x": {"get": {"parameters": parameters}}}

    page = shown(signed_in(), document=listing(paths))

    assert "Not sent: the cookie “sid”" in page


def test_a_file_can_be_given():
    file = SimpleUploadedFile("shop.yaml", SHOP.encode())

    assert "getOrder" in shown(signed_in(), file=file, document="")


def test_text_that_is_too_large_is_refused_with_what_to_do(settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 2_621_440

    answer = signed_in().post(PAGE, {"document": "x" * 5_000_000})

    assert answer.status_code == 400
    assert "The text is larger than 2.5 MB." in answer.content.decode()
    assert "the text is still in the form" in answer.content.decode()


def test_chosen_operations_become_tools_that_are_switched_off():
    client = signed_in()
    row = Credential.objects.create(
        name="shop", owner=make_user("admin"), hosts=["eu.shop.example"]
    )

    page = upload(client, credential=row.pk)
    chosen = ["GET /orders/{order-id}", "POST /orders", "PUT /files", "GET /nothing"]

    client.post(page, {"operation": chosen, "create": "1"})

    made = {tool.name: tool for tool in Tool.objects.all()}
    assert set(made) == {"getOrder", "create_order"}
    assert not any(tool.enabled for tool in made.values())
    assert {tool.credential for tool in made.values()} == {row}
    assert made["getOrder"].revisions.get().note == "From the OpenAPI document 'Shop'"


def test_every_call_of_an_imported_write_requires_approval():
    paths = {"/x": {m: {} for m in ("get", "head", "post", "put", "patch", "delete")}}
    client = signed_in()

    client.post(upload(client, document=listing(paths)), {"all": "1"})

    asks = {
        tool.config["method"]: freeze_tool(tool).asks for tool in Tool.objects.all()
    }
    assert asks == {
        **{"GET": False, "HEAD": False},
        **{"POST": True, "PUT": True, "PATCH": True, "DELETE": True},
    }


def test_choosing_nothing_is_said():
    client = signed_in()

    page = client.post(upload(client), {"create": "1"}).content.decode()

    assert "Select at least one operation." in page


def test_the_document_is_not_sent_back_with_the_selection():
    client = signed_in()
    page = upload(client, document=SHOP + "x-note: " + "n" * 500_000)

    assert len(client.get(page).content) < 50_000
    client.post(page, {"operation": ["GET /orders/{order-id}"], "create": "1"})

    assert Tool.objects.get().name == "getOrder"


def test_all_that_are_possible_are_made_at_once():
    client = signed_in()
    page = upload(client)

    assert b"Create all 5 tools" in client.get(page).content
    client.post(page, {"all": "1"})

    assert Tool.objects.count() == 5
    assert "PUT" not in {tool.config["method"] for tool in Tool.objects.all()}


TAGGED = listing(
    {
        "/orders": {
            "get": {"tags": ["orders"], "summary": "List orders"},
            "post": {"tags": ["orders", "write"], "summary": "Create an order"},
        },
        "/users": {"get": {"tags": ["users"]}, "put": {"requestBody": UNSENDABLE}},
    }
)


def choice_after(client, page, **given):
    """Return which operations are shown, and which are selected, after a button."""
    rows = client.post(page, given).context["choice"].rows
    shown = [row.operation.key for row in rows if row.is_shown]
    return shown, [row.operation.key for row in rows if row.is_selected]


def test_operations_are_filtered_by_text_and_tag():
    client = signed_in()
    page = upload(client, document=TAGGED)

    assert choice_after(client, page, q="order create")[0] == ["POST /orders"]
    assert choice_after(client, page, q="GET")[0] == ["GET /orders", "GET /users"]
    assert choice_after(client, page, tag="write")[0] == ["POST /orders"]
    assert choice_after(client, page, tag="users", q="order")[0] == []
    assert '<option value="orders">orders (2)</option>' in shown(
        client, document=TAGGED
    )


def test_all_that_the_filter_shows_are_selected_with_those_selected_before():
    client = signed_in()
    page = upload(client, document=TAGGED)
    before = {"q": "order", "operation": ["GET /users"]}

    assert choice_after(client, page, **before, mark="all") == (
        ["GET /orders", "POST /orders"],
        ["GET /orders", "POST /orders", "GET /users"],
    )
    assert choice_after(client, page, **before, mark="none")[1] == []
    assert choice_after(client, page, **before)[1] == ["GET /users"]
    assert choice_after(client, page, mark="all")[1][-1] == "GET /users"


def test_selected_operations_that_the_filter_hides_are_created_too():
    client = signed_in()
    page = upload(client, document=TAGGED)
    given = {"q": "order", "operation": ["GET /users", "GET /orders"]}
    html = client.post(page, given).content.decode()

    assert html.count("hidden>") >= 2
    client.post(page, {**given, "create": "1"})
    assert Tool.objects.count() == 2


@pytest.mark.slow
def test_more_operations_than_a_form_usually_has_fields_can_be_selected():
    client = signed_in()
    paths = {f"/x{n}": {"get": {}} for n in range(1200)}
    page = upload(client, document=listing(paths))

    client.post(page, {"operation": [f"GET {one}" for one in paths], "create": "1"})

    assert Tool.objects.count() == 1200


def test_a_document_of_several_files_says_how_to_bundle_it():
    paths = {"/x": {"$ref": "./paths/x.yaml"}, "/y": {"get": {}}}

    page = shown(signed_in(), document=listing(paths))

    assert "The document refers to other files, which are not read." in page
    assert "part of it is in another file (./paths/x.yaml)" in page
    assert "other files" not in shown(signed_in())


def test_a_server_that_tools_may_not_reach_is_said_before_tools_are_made():
    text = SHOP.replace("https://{region}.shop.example/v1/", "http://169.254.169.254")

    page = shown(signed_in(), document=text)

    assert "Calls to &#x27;169.254.169.254&#x27; are not allowed" in page


def test_each_tool_that_is_made_has_its_revision_and_its_entries():
    client = signed_in()
    Tool.objects.create(name="get_order", slug="getorder", owner=make_user("admin"))

    client.post(upload(client), {"all": "1"})

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
    client = signed_in()
    page = upload(client, document=listing(paths))

    with django_assert_max_num_queries(40):
        client.post(page, {"all": "1"})

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
    assert client.get(upload(signed_in())).status_code == 403


def test_a_document_is_shown_to_nobody_else():
    other = Client()
    other.force_login(make_user("eve", is_staff=True, is_superuser=True))

    answer = other.get(upload(signed_in()), follow=True)

    assert answer.redirect_chain == [(PAGE, 302)]
    assert "The document has expired. Upload it again." in answer.content.decode()


def test_a_document_expires_after_an_hour_and_is_deleted_by_the_next_upload():
    client = signed_in()
    page = upload(client)
    an_hour_ago = timezone.now() - timedelta(hours=1, seconds=1)
    UploadedDocument.objects.update(uploaded_at=an_hour_ago)

    assert client.post(page, {"all": "1"}).headers["Location"] == PAGE
    assert not Tool.objects.exists()
    upload(client)
    assert UploadedDocument.objects.count() == 1


def test_a_person_keeps_the_newest_documents_only():
    client = signed_in()
    pages = [upload(client) for _number in range(MAX_UPLOADS + 1)]

    assert client.get(pages[0]).status_code == 302
    assert client.get(pages[1]).status_code == 200
    assert UploadedDocument.objects.count() == MAX_UPLOADS


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
@pytest.mark.slow
def test_no_document_breaks_out(text, cuts):
    for place, length, junk in cuts:
        at = int(place * len(text))
        text = text[:at] + junk + text[at + length :]
    given = {"document": text, "base": "https://a.example"}
    with transaction.atomic():
        client = signed_in()
        with outbreaks() as seen:
            shown = client.post(PAGE, given, follow=True)
            page = shown.request["PATH_INFO"]
            made = client.post(page, {"all": "1"}) if page != PAGE else shown
        event(f"made {Tool.objects.count()} tools")
        assert {shown.status_code, made.status_code} <= {200, 302}
        assert seen == []
        assert not Tool.objects.filter(enabled=True).exists()
        assert not Tool.objects.exclude(visibility="private").exists()
        transaction.set_rollback(True)
