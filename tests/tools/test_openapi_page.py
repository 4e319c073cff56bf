"""Importing OpenAPI documents in the admin."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from django.test import Client
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from tests.fakes.outbreak import outbreaks
from tests.tools.rows import make_user
from tests.tools.test_openapi import SHOP
from tests.tools.test_openapi_makes import FILES, FORECAST, NEWS, PHONE, VECTORS, VETS
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
    assert "Not possible: its body is image/png" in page
    assert not Tool.objects.exists()


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


def test_choosing_nothing_is_said():
    page = signed_in().post(PAGE, {"document": SHOP, "choose": "1"}).content.decode()

    assert "Choose at least one operation." in page


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "Paste a document or choose a file."),
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
