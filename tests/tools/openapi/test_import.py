"""Making tools of OpenAPI documents."""

import json

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.openapi.document import DocumentRefused, parse_openapi_document
from tools.openapi.operations import list_operations

SHOP = """
openapi: 3.0.3
info: {title: Shop, version: "1"}
servers:
  - url: https://{region}.shop.example/v1/
    variables: {region: {default: eu}}
paths:
  /orders/{order-id}:
    parameters:
      - {name: order-id, in: path, required: true, schema: {type: string}}
    get:
      operationId: getOrder
      summary: Look up an order
      parameters:
        - {name: "expand[]", in: query, schema: {type: array, items: {type: string}}}
        - {name: X-Trace, in: header, schema: {type: string}}
        - {name: Authorization, in: header, required: true, schema: {type: string}}
      responses: {200: {description: ok}}
    patch:
      requestBody:
        required: true
        content:
          application/merge-patch+json:
            schema: {$ref: "#/components/schemas/Order"}
  /orders:
    post:
      operationId: create order!
      requestBody: {$ref: "#/components/requestBodies/New"}
    delete:
      operationId: drop
  /files:
    put:
      requestBody:
        required: true
        content: {image/png: {}}
  /search:
    post:
      requestBody:
        content:
          application/x-www-form-urlencoded:
            schema: {type: object, required: [q], properties: {q: {type: string}}}
components:
  requestBodies:
    New:
      content:
        application/json:
          schema:
            type: object
            required: [lines, id]
            properties:
              id: {type: integer, readOnly: true}
              lines: {type: array, items: {$ref: "#/components/schemas/Line"}}
              note: {type: string, nullable: true, example: hi}
              price: {type: number, minimum: 0, exclusiveMinimum: true}
  schemas:
    Order: {type: array, items: {type: string}}
    Line:
      type: object
      properties:
        name: {type: string}
        parts: {type: array, items: {$ref: "#/components/schemas/Line"}}
"""


def operations(text=SHOP, **more):
    return {
        one.key: one for one in list_operations(parse_openapi_document(text), **more)
    }


def one_path(**operation):
    return json.dumps(
        {
            "openapi": "3.1.0",
            "servers": [{"url": "https://a.example"}],
            "paths": {"/x": {"post": operation}},
        }
    )


def test_each_operation_becomes_a_request():
    one = operations()["GET /orders/{order-id}"]

    assert one.config == {
        "method": "GET",
        "url": "https://eu.shop.example/v1/orders/{order_id}",
        "query": {"expand[]": "{expand}"},
        "headers": {"X-Trace": "{X_Trace}"},
    }
    assert one.args_schema["required"] == ["order_id"]
    assert (one.name, one.description) == ("getOrder", "Look up an order")


def test_the_verb_says_the_effect():
    found = operations()

    assert {key: one.effect for key, one in found.items() if not one.flaw} == {
        "GET /orders/{order-id}": "read",
        "PATCH /orders/{order-id}": "side_effect",
        "POST /orders": "side_effect",
        "DELETE /orders": "idempotent",
        "POST /search": "side_effect",
    }


def test_a_json_body_becomes_arguments():
    one = operations()["POST /orders"]

    assert one.name == "create_order"
    assert one.config["json"] == {
        "lines": "{lines}",
        "note": "{note}",
        "price": "{price}",
    }
    properties = one.args_schema["properties"]
    assert properties["note"] == {"type": ["string", "null"]}
    assert properties["price"] == {"type": "number", "exclusiveMinimum": 0}
    assert one.args_schema["required"] == ["lines"]


def test_a_schema_that_holds_itself_ends():
    line = operations()["POST /orders"].args_schema["properties"]["lines"]["items"]

    assert line["properties"]["parts"] == {"type": "array", "items": {}}


def test_a_body_that_is_no_object_is_one_argument():
    one = operations()["PATCH /orders/{order-id}"]

    assert one.config["json"] == "{body}"
    assert set(one.args_schema["required"]) == {"order_id", "body"}


def test_a_form_body_becomes_a_form():
    assert operations()["POST /search"].config["form"] == {"q": "{q}"}


def test_an_operation_that_cannot_be_a_tool_says_why():
    assert "image/png" in operations()["PUT /files"].flaw


def test_json_and_yaml_say_the_same():
    as_json = json.dumps(yaml.safe_load(SHOP))

    assert operations(as_json).keys() == operations().keys()


def test_a_server_without_a_host_needs_a_base():
    text = SHOP.replace("https://{region}.shop.example/v1/", "/api")

    assert all("has no server" in one.flaw or "PUT" in one.key
               for one in operations(text).values())  # fmt: skip
    found = operations(text, base="https://a.example/root")["DELETE /orders"]
    assert found.config["url"] == "https://a.example/api/orders"


ELSEWHERE = {"$ref": "./parts/order.yaml#/x"}


@pytest.mark.parametrize(
    "operation",
    [
        {"requestBody": {"content": {"application/json": {"schema": ELSEWHERE}}}},
        {"requestBody": ELSEWHERE},
        {"parameters": [ELSEWHERE]},
        {"parameters": [{"name": "q", "in": "query", "schema": {"items": ELSEWHERE}}]},
        ELSEWHERE,
    ],
)
def test_an_operation_that_is_partly_in_another_file_says_so(operation):
    flaw = operations(one_path(**operation))["POST /x"].flaw

    assert flaw.startswith("part of it is in another file (./parts/order.yaml#/x)")


def test_a_path_in_another_file_says_so():
    text = '{"openapi": "3.0.0", "paths": {"/x": {"$ref": "https://a.example/x.json"}}}'

    assert "another file (https://a.example/x.json)" in operations(text)["/x"].flaw


@pytest.mark.parametrize("pattern", ["(a+)+$", "a" * 301, r"\p{L}", 7])
def test_a_pattern_that_we_would_not_match_is_left_to_the_server(pattern):
    schema = {"type": "string", "pattern": pattern, "maxLength": 9}
    parameter = {"name": "q", "in": "query", "schema": schema}

    one = operations(one_path(parameters=[parameter]))["POST /x"]

    assert one.args_schema["properties"]["q"] == {"type": "string", "maxLength": 9}


def test_patterns_of_names_are_left_out_alike():
    schema = {"type": "object", "patternProperties": {"(a*)*": {"type": "string"}}}
    parameter = {"name": "q", "in": "query", "style": "deepObject", "schema": schema}

    one = operations(one_path(parameters=[parameter]))["POST /x"]

    assert one.args_schema["properties"]["q"] == {"type": "object"}


def test_names_are_free_of_each_other():
    paths = {f"/{n}": {"get": {"operationId": "same"}} for n in "ab"}
    text = json.dumps(
        {"openapi": "3.1.0", "servers": [{"url": "https://a.example"}], "paths": paths}
    )

    assert [one.name for one in operations(text).values()] == ["same", "same_2"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is not an object"),
        ("[]", "it is not an object"),
        ("{", "neither JSON nor YAML"),
        ('{"swagger": "1.2"}', "it is Swagger 1.2"),
        ('{"swagger": "2.0", "paths": []}', "`paths` is not an object"),
        ('{"openapi": "4.0.0"}', "is “4.0.0”"),
        ('{"info": {}}', "it has no `openapi`"),
        ('{"openapi": "3.0.0", "paths": []}', "`paths` is not an object"),
        ("a: &x [1]\nb: [*x, *x]", "YAML aliases"),
        ("!!python/object/apply:os.system ['true']", "neither JSON nor YAML"),
        ("[" * 5_000, "neither JSON nor YAML"),
        ("a: {? [b] : c}", "a key is a list"),
        ("openapi: 3.0.0\n---\nopenapi: 3.0.0", "several documents"),
        ("openapi: !!binary aGk=", "the YAML tag"),
        (
            '{"openapi": "3.0.0", "paths": ' + "[" * 900 + "]" * 900 + "}",
            "not an object",
        ),
    ],
)
def test_what_is_no_document_is_a_sentence(text, why):
    with pytest.raises(DocumentRefused, match=why):
        parse_openapi_document(text)


WORDS = st.sampled_from(
    [
        *(
            "paths",
            "get",
            "post",
            "parameters",
            "name",
            "in",
            "path",
            "query",
            "schema",
        ),
        *("$ref", "#/paths", "#/components/schemas/A", "/a/{b}", "requestBody"),
        *("content", "application/json", "properties", "required", "type", "object"),
        *("allOf", "items", "servers", "url", "https://a.example", "../", "{", ""),
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4)
    ),
    max_leaves=25,
)


@settings(max_examples=150, deadline=None)
@given(paths=st.dictionaries(WORDS, VALUES, max_size=3), rest=VALUES)
def test_no_document_breaks_the_import(paths, rest):
    body = {"openapi": "3.1.0", "paths": {"/a/{b}": paths, **paths}, "servers": rest}

    for one in list_operations(
        parse_openapi_document(json.dumps(body)), base="https://a.example"
    ):
        assert one.flaw or one.config["url"].startswith("https://")


def tangled(schemas, operations):
    """Return a document whose schemas all refer to each other."""
    parts = {
        f"s{i}": {
            "type": "object",
            "properties": {
                f"p{j}": {"$ref": f"#/components/schemas/s{(i * 7 + j) % schemas}"}
                for j in range(schemas)
            },
        }
        for i in range(schemas)
    }
    reference = {"schema": {"$ref": "#/components/schemas/s0"}}
    body = {"requestBody": {"content": {"application/json": reference}}}
    return json.dumps(
        {
            **{"openapi": "3.0.0", "components": {"schemas": parts}},
            "paths": {f"/x{i}": {"post": body} for i in range(operations)},
        }
    )


def test_schemas_that_all_refer_to_each_other_take_a_limited_time():
    operations = list_operations(
        parse_openapi_document(tangled(40, 900)), base="https://shop.example"
    )

    assert len(operations) == 900
    assert operations[0].flaw == ""
    assert (
        operations[-1].flaw == "the document is large; reduce it to the paths you need"
    )


def test_much_yaml_is_refused_before_it_is_read():
    with pytest.raises(DocumentRefused, match="as YAML larger than 8 MB"):
        parse_openapi_document("openapi: 3.0.0\nx: [" + "a, " * 3_000_000 + "]")


def test_what_is_too_long_is_refused_before_it_is_read():
    with pytest.raises(DocumentRefused, match="larger than 16 MB"):
        parse_openapi_document(" " * (16 << 20) + "{}")


def test_more_operations_than_anybody_reads_are_refused():
    paths = {f"/x{n}": {"get": {}, "put": {}} for n in range(1001)}

    with pytest.raises(DocumentRefused, match="more than 2,000 operations"):
        parse_openapi_document(json.dumps({"openapi": "3.0.0", "paths": paths}))


def test_a_path_that_stands_for_many_ends_somewhere():
    paths = {f"/x{n}": {"$ref": "#/components/pathItems/a"} for n in range(3000)}
    items = {"pathItems": {"a": {"get": {}, "put": {}}}}
    body = {"openapi": "3.1.0", "paths": paths, "components": items}

    assert len(list_operations(parse_openapi_document(json.dumps(body)))) == 2000
