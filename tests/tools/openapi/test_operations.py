"""What real documents of different make look like, in a few lines of ours each.

The documents themselves were tried too; docs/openapi.md says which, and what came.
"""

import pytest

from tools.kinds.http_config import HttpConfig
from tools.kinds.http_request import build_http_request
from tools.openapi.document import parse_openapi_document
from tools.openapi.operations import list_operations
from tools.openapi.security import find_required_credential

PHONE = """
openapi: 3.0.1
info: {title: Phone calls, version: "1"}
servers: [{url: "https://api.phone.example"}]
components:
  securitySchemes: {account: {type: http, scheme: basic}}
paths:
  /2010/Accounts/{AccountSid}/Calls.json:
    servers: [{url: "https://calls.phone.example"}]
    parameters:
      - {name: AccountSid, in: path, required: true,
         schema: {type: string, minLength: 34, pattern: "^AC[0-9a-fA-F]{32}$"}}
    get:
      operationId: ListCall
      parameters:
        - {name: "StartTime<", in: query, schema: {type: string, format: date-time}}
        - {name: "StartTime>", in: query, schema: {type: string, format: date-time}}
    post:
      operationId: CreateCall
      requestBody:
        content:
          application/x-www-form-urlencoded:
            schema:
              type: object
              required: [To]
              properties:
                To: {type: string}
                StatusEvent: {type: array, items: {type: string}}
"""
"""A generator of its own: forms, basic authentication, odd names of parameters."""

FORECAST = """
openapi: 3.1.0
info: {title: Forecast, version: 1.0.0}
servers: [{url: "https://api.sky.example"}]
paths:
  /v1/forecast:
    get:
      parameters:
        - {name: latitude, in: query, required: true, schema: {type: number}}
        - name: hourly
          in: query
          explode: false
          schema: {type: array, items: {type: string, enum: [rain, wind_10m]}}
        - name: models
          in: query
          schema: {type: array, items: {type: string}}
        - name: range
          in: query
          style: deepObject
          schema: {type: object}
"""
"""Written by hand, 3.1, lists in one parameter."""

VETS = r"""
openapi: 3.0.1
info: {title: Vets, version: "1"}
servers: [{url: "http://localhost:9966/vets/api"}]
paths:
  /owners/{ownerId}:
    put:
      operationId: updateOwner
      parameters:
        - {name: ownerId, in: path, required: true, schema: {type: integer}}
      requestBody:
        required: true
        content: {application/json: {schema: {$ref: "#/components/schemas/Owner"}}}
components:
  schemas:
    OwnerFields:
      type: object
      required: [name]
      properties:
        name: {type: string, pattern: "^[\\p{L}]+([ '-][\\p{L}]+)$"}
        pets: {type: array, readOnly: true, items: {$ref: "#/components/schemas/Owner"}}
    Owner:
      allOf:
        - $ref: "#/components/schemas/OwnerFields"
        - {type: object, properties: {id: {type: integer, readOnly: true}}}
"""
"""Of a Java server: patterns of another dialect, allOf, an address on one machine."""

VECTORS = """
openapi: 3.0.1
info: {title: Vectors, version: master}
servers:
  - url: "{protocol}://{hostname}:{port}"
    variables:
      protocol: {enum: [http, https], default: https}
      hostname: {default: vectors.example}
      port: {default: "6333"}
components:
  securitySchemes: {api-key: {type: apiKey, in: header, name: api-key}}
  schemas:
    Filter:
      type: object
      properties:
        must:
          anyOf:
            - {$ref: "#/components/schemas/Filter"}
            - {type: array, items: {$ref: "#/components/schemas/Filter"}}
            - {nullable: true}
      additionalProperties: false
    Ordering: {type: string, enum: [weak, strong]}
paths:
  /collections/{name}/points:
    put:
      operationId: upsert
      parameters:
        - {name: name, in: path, required: true, schema: {type: string}}
        - {name: ordering, in: query, schema: {$ref: "#/components/schemas/Ordering"}}
      requestBody:
        content:
          application/json:
            schema: {$ref: "#/components/schemas/Filter"}
"""
"""Made from Rust types: anyOf with null, schemas that hold themselves."""

FILES = """
openapi: 3.0.2
info: {title: Files, version: "2"}
servers: [{url: "https://api.files.example/2.0"}]
components:
  securitySchemes:
    OAuth2Security:
      type: oauth2
      flows: {authorizationCode: {authorizationUrl: "https://a", tokenUrl: "https://b"}}
paths:
  /files/{file_id}:
    get:
      operationId: get_files_id
      parameters:
        - {name: file_id, in: path, required: true, schema: {type: string}}
        - name: fields
          in: query
          explode: false
          schema: {type: array, items: {type: string}}
        - {name: if-none-match, in: header, schema: {type: string}}
  /files/content:
    post:
      operationId: post_files_content
      servers: [{url: "https://upload.files.example/2.0"}]
      requestBody:
        required: true
        content:
          multipart/form-data:
            schema:
              type: object
              required: [attributes, file]
              properties:
                attributes: {type: object, properties: {name: {type: string}}}
                file: {type: string, format: binary}
"""
"""OAuth, uploads, servers of single operations."""

NEWS = """
openapi: 3.0.0
info: {title: News, version: 1.0.0}
servers: [{url: /api/v1}]
paths:
  "/lists/{id}":
    delete:
      parameters:
        - {name: id, in: path, required: true, schema: {type: integer}}
        - {name: query, in: query, schema: {type: string}}
      responses: {"200": {description: gone}}
"""
"""Written by hand in YAML, without operation ids, its server named by a path."""


def found(text, **more):
    return {
        one.key: one for one in list_operations(parse_openapi_document(text), **more)
    }


def sent(one, **arguments):
    return build_http_request(HttpConfig.model_validate(one.config), arguments)


def test_a_telephone_service():
    calls = found(PHONE)
    listed = calls["GET /2010/Accounts/{AccountSid}/Calls.json"]
    made = calls["POST /2010/Accounts/{AccountSid}/Calls.json"]

    assert find_required_credential(parse_openapi_document(PHONE)) == ("basic", "")
    assert sent(listed, AccountSid="AC1", StartTime="a", StartTime_="b").url == (
        "https://calls.phone.example/2010/Accounts/AC1/Calls.json"
        "?StartTime%3C=a&StartTime%3E=b"
    )
    asked = sent(made, AccountSid="AC1", To="+1", StatusEvent=["busy", "done"])
    assert asked.content == b"To=%2B1&StatusEvent=busy&StatusEvent=done"
    assert made.args_schema["required"] == ["AccountSid", "To"]


def test_a_weather_service():
    (one,) = found(FORECAST).values()

    assert sent(
        one, latitude=1, hourly=["rain", "wind_10m"], models=["a", "b"]
    ).url == (
        "https://api.sky.example/v1/forecast"
        "?latitude=1&hourly=rain%2Cwind_10m&models=a&models=b"
    )
    assert sent(one, latitude=1, range={"from": 1, "to": 2}).url.endswith(
        "?latitude=1&range%5Bfrom%5D=1&range%5Bto%5D=2"
    )
    assert sent(one, latitude=1, hourly=[]).url.endswith("?latitude=1")


def test_a_java_service():
    (one,) = found(VETS, base="https://vets.example/api").values()

    assert one.flaw == ""
    assert one.config["url"] == "https://vets.example/api/owners/{ownerId}"
    assert "\\p" not in str(one.args_schema)
    assert "readOnly" not in str(one.args_schema)
    assert one.effect == "idempotent"


def test_a_vector_database():
    (one,) = found(VECTORS).values()

    assert one.config["url"].startswith("https://vectors.example:6333/collections/")
    assert find_required_credential(parse_openapi_document(VECTORS)) == (
        "header",
        "api-key",
    )
    assert one.args_schema["properties"]["ordering"]["enum"] == ["weak", "strong"]
    assert "$ref" not in str(one.args_schema)


def test_a_file_service():
    operations = found(FILES)

    one = operations["GET /files/{file_id}"]
    assert sent(one, file_id="7", fields=["id", "name"]).url.endswith(
        "/files/7?fields=id%2Cname"
    )
    assert find_required_credential(parse_openapi_document(FILES)) == ("bearer", "")
    upload = operations["POST /files/content"]
    assert upload.config["multipart"] == {
        "attributes": "{attributes}",
        "file": {"content": "{file}"},
    }
    assert upload.args_schema["required"] == ["attributes", "file"]


def test_a_newsletter_service():
    (one,) = found(NEWS, base="https://news.example").values()

    assert one.name == "delete__lists_id"
    assert sent(one, id=7, query="x").url == (
        "https://news.example/api/v1/lists/7?query=x"
    )
    assert found(NEWS)["DELETE /lists/{id}"].flaw.startswith("the document has no")


@pytest.mark.parametrize("text", [PHONE, FORECAST, VETS, VECTORS, FILES, NEWS])
def test_what_is_imported_could_be_sent_at_once(text):
    for one in found(text, base="https://a.example").values():
        if not one.flaw:
            values = {
                name: ["x"] if part.get("type") == "array" else "x"
                for name, part in one.args_schema["properties"].items()
            }
            assert sent(one, **values).url.startswith("https://")
