"""The OpenAPI document: complete, and made of valid schemas."""

import jsonschema_rs
import pytest

from runs.api.documentation import get_document
from runs.api.registry import ROUTES
from runs.api.route import get_url_name
from runs.models import ApiToken
from tests.api.make_client import Api
from tests.api.test_access_matrix import doors_of_api
from tests.make import make_user

UNDOCUMENTED = {"api-nothing", "api-openapi"}


def test_every_url_of_the_api_is_in_the_document():
    named = {door.name for door in doors_of_api()} - UNDOCUMENTED

    assert named == {get_url_name(route.path) for route in ROUTES}
    assert {f"/api/v1/{route.path}" for route in ROUTES} == set(get_document()["paths"])


def test_operations_and_paths_are_unique():
    names = [route.operation_id for route in ROUTES]
    places = [(route.method, route.path) for route in ROUTES]

    assert len(set(names)) == len(names)
    assert len(set(places)) == len(places)


def test_every_schema_is_valid_and_every_reference_leads_somewhere():
    document = get_document()

    for schema in document["components"]["schemas"].values():
        jsonschema_rs.meta.validate(schema)
        jsonschema_rs.validator_for({**schema, "components": document["components"]})


def test_no_two_schemas_have_the_same_name():
    """Of two, the document has long names, which clients are generated with."""
    names = get_document()["components"]["schemas"]

    assert [name for name in names if "__" in name] == []


def test_every_route_says_what_it_does_and_which_scope_it_needs():
    for route in ROUTES:
        assert route.needed_scope in ApiToken.Scope.values
        assert route.do.__doc__, route.operation_id
        assert not route.summary.endswith(".")


def test_every_route_that_creates_something_takes_an_idempotency_key():
    creating = [one for one in ROUTES if one.method == "POST" and one.status == 201]

    assert [one.path for one in creating if not one.is_idempotent] == []


def test_definitions_that_can_be_changed_have_an_etag():
    changing = {one.path for one in ROUTES if one.method == "PATCH"}
    with_etag = {one.path for one in ROUTES if one.has_etag}

    assert changing - with_etag == {"conversations/{id}"}
    for route in ROUTES:
        if route.path in changing and route.method == "GET":
            assert route.has_etag or route.path == "conversations/{id}"


@pytest.mark.django_db
def test_the_document_is_read_by_token():
    answer = Api(make_user()).get("openapi.json")

    assert answer.json()["openapi"] == "3.1.0"
    assert Api(None).get("openapi.json").status_code == 401
