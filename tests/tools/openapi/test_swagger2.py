"""Documents of Swagger 2.0."""

import io
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.core.files.uploadhandler import MemoryFileUploadHandler
from django.http.multipartparser import MultiPartParser

from tests.tools.http_server import Answer, serve
from tools.kinds.http_config import HttpConfig
from tools.kinds.http_request import build_http_request
from tools.kinds.registry import call_tool
from tools.net.deadline import Deadline
from tools.openapi.document import parse_openapi_document
from tools.openapi.operations import list_operations
from tools.openapi.security import find_required_credential
from tools.spec import ToolSpec

LIBRARY = """
swagger: "2.0"
info: {title: Library, version: "1"}
host: library.example
basePath: /v2
schemes: [http, https]
consumes: [application/json]
securityDefinitions: {account: {type: basic}}
parameters:
  shelf: {name: shelf, in: path, required: true, type: string}
definitions:
  Book:
    type: object
    required: [title]
    properties:
      id: {type: integer, readOnly: true}
      title: {type: string, x-nullable: true}
      sequel: {$ref: "#/definitions/Book"}
paths:
  /shelves/{shelf}/books:
    parameters:
      - {$ref: "#/parameters/shelf"}
      - {name: limit, in: query, type: integer, maximum: 5, description: Up to 5.}
    get:
      operationId: listBooks
      tags: [books]
      parameters:
        - {name: limit, in: query, type: integer, maximum: 100}
        - {name: csv, in: query, type: array, items: {type: string}}
        - {name: multi, in: query, type: array, items: {type: string},
           collectionFormat: multi}
        - {name: pipes, in: query, type: array, items: {type: string},
           collectionFormat: pipes}
        - {name: ssv, in: query, type: array, items: {type: string},
           collectionFormat: ssv}
        - {name: tsv, in: query, type: array, items: {type: string},
           collectionFormat: tsv}
        - {name: X-Tags, in: header, type: array, items: {type: string}}
    post:
      operationId: addBook
      parameters:
        - {name: book, in: body, required: true, schema: {$ref: "#/definitions/Book"}}
  /shelves/{shelf}/cover:
    post:
      operationId: setCover
      consumes: [multipart/form-data]
      parameters:
        - {$ref: "#/parameters/shelf"}
        - {name: cover, in: formData, type: file, required: true,
           description: The picture.}
        - {name: tags, in: formData, type: array, items: {type: string}}
        - {name: note, in: formData, type: string, maxLength: 9}
  /search:
    post:
      operationId: search
      schemes: [http]
      consumes: [application/x-www-form-urlencoded]
      parameters:
        - {name: q, in: formData, type: string, required: true}
        - {name: kinds, in: formData, type: array, items: {type: string},
           collectionFormat: multi}
    put:
      consumes: [application/xml]
      parameters: [{name: b, in: body, schema: {type: object}}]
    delete:
      parameters: [{$ref: "other.yaml#/parameters/x"}]
"""


def operations(text=LIBRARY, **more):
    found = list_operations(parse_openapi_document(text), **more)
    return {one.name: one for one in found}


def sent(one, **arguments):
    return build_http_request(HttpConfig.model_validate(one.config), arguments)


def test_parameters_are_sent_in_their_collection_format():
    one = operations()["listBooks"]
    two = ["a", "b"]

    got = sent(one, shelf="s", csv=two, multi=two, pipes=two, ssv=two, X_Tags=two)

    assert got.url.startswith("https://library.example/v2/shelves/s/books?")
    assert parse_qsl(urlsplit(got.url).query) == [
        *(("csv", "a,b"), ("multi", "a"), ("multi", "b")),
        *(("pipes", "a|b"), ("ssv", "a b")),
    ]
    assert got.headers == {"X-Tags": "a,b"}
    assert one.omitted == ["the query parameter “tsv” in the style tsv"]
    assert one.tags == ("books",)


def test_a_parameter_of_the_operation_replaces_that_of_the_path():
    schema = operations()["listBooks"].args_schema

    assert schema["properties"]["limit"] == {"type": "integer", "maximum": 100}
    assert schema["required"] == ["shelf"]


def test_a_body_becomes_arguments():
    one = operations()["addBook"]

    assert one.config["json"] == {"title": "{title}", "sequel": "{sequel}"}
    assert one.args_schema["properties"]["title"] == {"type": ["string", "null"]}
    assert one.args_schema["required"] == ["shelf", "title"]


def test_a_form_is_sent_to_the_server_of_its_scheme():
    one = operations()["search"]

    got = sent(one, q="a b", kinds=["x", "y"])
    assert got.url == "http://library.example/v2/search"
    assert got.content == b"q=a+b&kinds=x&kinds=y"
    assert one.args_schema["required"] == ["q"]


def test_a_file_and_fields_reach_the_server(settings):
    settings.PRIVATE_HOSTS, settings.OWN_PORTS = "tool=127.0.0.1", []
    with serve(lambda got: Answer({})) as server:
        one = operations(base=server.url)["setCover"]
        spec = ToolSpec(name="t", kind="http", config=one.config)
        arguments = {"shelf": "s", "cover": {"text": "x"}, "tags": ["a", "b"]}
        call_tool(spec, arguments, deadline=Deadline(seconds=10), idempotency_key="")

    (got,) = server.got
    meta = {
        "CONTENT_TYPE": got.headers["content-type"],
        "CONTENT_LENGTH": len(got.body),
    }
    handlers = [MemoryFileUploadHandler()]
    fields, files = MultiPartParser(meta, io.BytesIO(got.body), handlers).parse()
    assert got.path == "/shelves/s/cover"
    assert dict(fields.lists()) == {"tags": ["a,b"]}
    assert files["cover"].read() == b"x"
    argument = one.args_schema["properties"]["cover"]
    assert argument["description"] == "The picture."


def test_what_cannot_be_sent_is_refused_with_the_reason():
    found = operations()

    assert (
        found["put__search"].flaw == "its body is application/xml, not JSON or a form"
    )
    assert "another file (other.yaml#/parameters/x)" in found["delete__search"].flaw


def test_the_security_scheme_is_named():
    document = parse_openapi_document(LIBRARY)

    assert find_required_credential(document) == ("basic", "")


@pytest.mark.parametrize(
    ("head", "url"),
    [
        ("host: a.example", "https://a.example/x"),
        ("host: a.example\nschemes: [http]", "http://a.example/x"),
        ("host: a.example:8080\nbasePath: v1/", "https://a.example:8080/v1/x"),
        ("basePath: /v1", "https://typed.example/v1/x"),
        ("host: a.example\nschemes: 7\nbasePath: [1]", ""),
    ],
)
def test_the_server_is_scheme_host_and_base_path(head, url):
    text = f"swagger: 2.0\n{head}\npaths: {{/x: {{get: {{}}}}}}"
    base = "https://typed.example" if "host" not in head else ""

    (one,) = operations(text, base=base).values()

    assert one.config["url"] == url or not url


@pytest.mark.parametrize(
    "text",
    [
        "swagger: 2.0\nsecurityDefinitions: [1]\npaths: {/x: {get: 7}}",
        "swagger: 2.0\npaths: {/x: {post: {parameters: [{in: formData}, {in: body}]}}}",
        "swagger: 2.0\npaths: {/x: {post: {parameters: {}, consumes: 7, schemes: {}}}}",
        "swagger: 2.0\npaths: {/x: {post: {parameters: [7, {name: [], in: {}}]}}}",
        "swagger: 2.0\npaths: {/x: {get: {parameters: [{name: a, in: query,"
        " type: [7], items: 7, collectionFormat: {}}]}}}",
    ],
)
def test_wrong_types_break_nothing(text):
    for one in operations(text, base="https://a.example").values():
        assert one.flaw or one.config["url"].startswith("https://")
