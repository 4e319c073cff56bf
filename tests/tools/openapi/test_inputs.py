"""Each input of an operation is sent, named as left out, or a reason to refuse it."""

import json
from urllib.parse import parse_qsl, urlsplit

import pytest

from tools.kinds.http_config import HttpConfig
from tools.kinds.http_request import build_http_request
from tools.openapi.document import parse_openapi_document
from tools.openapi.operations import list_operations
from tools.openapi.security import find_required_credential

LIST = {"type": "array", "items": {"type": "string"}}
COLOR = {
    "type": "object",
    "properties": {"R": {"type": "integer"}, "G": {"type": "integer"}},
    "required": ["R"],
}
FREE = {"type": "object", "additionalProperties": True}
GET = {"get": {}}
FORM = "application/x-www-form-urlencoded"
FILE = {"type": "string", "format": "binary"}


def imported(operation, *, path="/x", method="post"):
    """Return the only operation of a document."""
    document = {
        "openapi": "3.1.0",
        "servers": [{"url": "https://a.example"}],
        "paths": {path: {method: operation}},
    }
    (one,) = list_operations(parse_openapi_document(json.dumps(document)))
    return one


def parameter(**more):
    return imported(
        {"parameters": [{"name": "c", "in": "query", **more}]}, method="get"
    )


def with_body(schema, kind="multipart/form-data", *, required=False, **media):
    content = {kind: {"schema": schema, **media}}
    return imported({"requestBody": {"content": content, "required": required}})


def sent(one, **arguments):
    assert one.flaw == ""
    return build_http_request(HttpConfig.model_validate(one.config), arguments)


def query_of(one, **arguments):
    return parse_qsl(urlsplit(sent(one, **arguments).url).query)


@pytest.mark.parametrize(
    ("style", "pairs"),
    [
        ({}, [("c", "a"), ("c", "b")]),
        ({"explode": False}, [("c", "a,b")]),
        ({"style": "spaceDelimited"}, [("c", "a b")]),
        ({"style": "spaceDelimited", "explode": True}, [("c", "a"), ("c", "b")]),
        ({"style": "pipeDelimited", "explode": False}, [("c", "a|b")]),
    ],
)
def test_a_list_in_the_query_has_its_style(style, pairs):
    one = parameter(schema=LIST, **style)

    assert query_of(one, c=["a", "b"]) == pairs
    assert one.omitted == []


@pytest.mark.parametrize(
    ("style", "pairs"),
    [
        ({"explode": False}, [("c", "R,1,G,2")]),
        ({"style": "spaceDelimited"}, [("c", "R 1 G 2")]),
        ({"style": "pipeDelimited"}, [("c", "R|1|G|2")]),
        ({"style": "deepObject", "explode": True}, [("c[R]", "1"), ("c[G]", "2")]),
    ],
)
def test_an_object_in_the_query_has_its_style(style, pairs):
    assert query_of(parameter(schema=COLOR, **style), c={"R": 1, "G": 2}) == pairs


def test_an_exploded_object_is_one_parameter_per_property():
    one = parameter(schema=COLOR, required=True)

    assert query_of(one, R=1, G=2) == [("R", "1"), ("G", "2")]
    assert one.args_schema["required"] == ["R"]


@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [(COLOR, {"R": 1}, '{"R":1}'), (LIST, ["a", "b"], '["a","b"]')],
)
def test_a_parameter_with_a_media_type_is_sent_as_json(schema, value, text):
    one = parameter(content={"application/json": {"schema": schema}})

    assert query_of(one, c=value) == [("c", text)]


@pytest.mark.parametrize(
    ("style", "schema", "value", "path"),
    [
        ("simple", {"type": "string"}, "a", "/x/a"),
        ("label", {"type": "string"}, "a", "/x/.a"),
        ("matrix", {"type": "string"}, "a", "/x/;id=a"),
        ("matrix", LIST, ["a", "b"], "/x/;id=a%2Cb"),
    ],
)
def test_a_path_parameter_has_its_style(style, schema, value, path):
    parameter = {"name": "id", "in": "path", "style": style, "schema": schema}
    one = imported({"parameters": [parameter]}, path="/x/{id}", method="get")

    assert urlsplit(sent(one, id=value).url).path == path


@pytest.mark.parametrize(
    ("parameter", "what"),
    [
        ({"name": "sid", "in": "cookie"}, "the cookie “sid”"),
        ({"name": "q", "in": "query", "style": "tabs"}, "“q” in the style tabs"),
        ({"name": "q", "in": "query", "schema": FREE}, "“q”, an object of any"),
        ({"name": "q", "in": "querystring"}, "“q”"),
        ({"name": "Host", "in": "header"}, "the header “Host”"),
        ({"name": "X-O", "in": "header", "schema": COLOR}, "the header “X-O”"),
    ],
)
def test_an_input_that_cannot_be_sent_is_named_or_refused(parameter, what):
    optional = imported({"parameters": [parameter]}, method="get")
    needed = imported({"parameters": [{**parameter, "required": True}]}, method="get")

    assert optional.flaw == ""
    assert len(optional.omitted) == 1
    assert what in optional.omitted[0]
    assert optional.args_schema["properties"] == {}
    assert what in needed.flaw
    assert needed.flaw.startswith("it requires ")


@pytest.mark.parametrize(
    ("style", "schema"),
    [("label", {**LIST}), ("simple", COLOR), ("unknown", {"type": "string"})],
)
def test_a_path_parameter_that_cannot_be_sent_is_refused(style, schema):
    parameter = {"name": "id", "in": "path", "style": style, "schema": schema}
    parameter["explode"] = True

    one = imported({"parameters": [parameter]}, path="/x/{id}", method="get")

    assert f"the path parameter “id” in the style {style}" in one.flaw


def test_a_parameter_that_is_defined_nowhere_is_named():
    one = imported({"parameters": [{"$ref": "#/components/parameters/gone"}]})

    reference = "#/components/parameters/gone"
    assert one.omitted == [f"the parameter “{reference}”, which is not in the document"]


@pytest.mark.parametrize(
    "reference",
    [
        "#/paths/~1x~1%7Bid%7D/get/parameters/1/schema",
        "#/paths/~1x~1{id}/get/parameters/1/schema",
        "#/components/schemas/A%20~0b",
        "#/components/schemas/50%",
        "#/components/schemas/One/anyOf/0",
    ],
)
def test_references_are_decoded_and_step_into_lists(reference):
    target = {"type": "string", "enum": ["a"]}
    document = {
        "openapi": "3.1.0",
        "servers": [{"url": "https://a.example"}],
        "components": {
            "schemas": {"A ~b": target, "50%": target, "One": {"anyOf": [target]}}
        },
        "paths": {
            "/x/{id}": {
                "get": {
                    "parameters": [
                        {"name": "id", "in": "path", "schema": {"type": "string"}},
                        {"name": "c", "in": "query", "schema": target},
                    ]
                }
            },
            "/y": {
                "get": {
                    "parameters": [
                        {"$ref": "#/paths/~1x~1%7Bid%7D/get/parameters/1"},
                        {"name": "d", "in": "query", "schema": {"$ref": reference}},
                    ]
                }
            },
        },
    }

    one = list_operations(parse_openapi_document(json.dumps(document)))[1]

    assert (one.flaw, one.omitted) == ("", [])
    assert one.args_schema["properties"] == {"c": target, "d": target}


@pytest.mark.parametrize(
    "reference",
    [
        "#",
        "#anchor",
        "#/paths/~1x/post/requestBody/content/0",
        "#/components/schemas/A",
    ],
)
def test_a_reference_without_a_target_is_named(reference):
    flaw = with_body({"$ref": reference}, "application/json").flaw

    assert flaw == f"it refers to “{reference}”, which is not in the document"


@pytest.mark.parametrize("item", [{"$ref": "#/gone"}, {"get": {"$ref": "#/gone"}}])
def test_a_path_without_a_target_is_named(item):
    document = {"openapi": "3.1.0", "paths": {"/x": item}}
    (one,) = list_operations(parse_openapi_document(json.dumps(document)))

    assert one.flaw == "it refers to “#/gone”, which is not in the document"
    assert not one.is_elsewhere


def test_headers_that_belong_to_the_client_are_not_called_left_out():
    names = ("Accept", "Content-Type", "Authorization")
    headers = [{"name": name, "in": "header", "required": True} for name in names]
    query = {"name": "authorization", "in": "query"}

    one = imported({"parameters": [*headers, query]})

    assert (one.flaw, one.omitted) == ("", [])
    assert [*one.args_schema["properties"]] == ["authorization"]


@pytest.mark.parametrize("required", [True, False])
@pytest.mark.parametrize("kind", ["application/octet-stream", "application/xml"])
def test_an_upload_is_refused_even_if_the_document_calls_it_optional(kind, required):
    one = with_body(FILE, kind, required=required)

    assert one.flaw == f"its body is {kind}, not JSON or a form"


def test_a_get_with_a_body_names_it():
    body = {"content": {"application/json": {"schema": COLOR}}}

    optional = imported({"requestBody": body}, method="get")
    needed = imported({"requestBody": {**body, "required": True}}, method="get")

    assert optional.omitted == ["a body with the method GET"]
    assert "a body with the method GET" in needed.flaw


def test_another_type_of_json_is_named_in_the_request():
    kinds = ("application/json-patch+json", "application/merge-patch+json")
    content = {kind: {"schema": COLOR} for kind in kinds}

    one = imported({"requestBody": {"content": content}}, method="patch")

    got = sent(one, R=1)
    assert got.headers == {"Content-Type": "application/merge-patch+json"}
    assert got.content == b'{"R":1}'


FIELDS = {
    "type": "object",
    "required": ["file"],
    "properties": {"note": {"type": "string"}, "file": FILE},
}


@pytest.mark.parametrize(
    "file",
    [
        FILE,
        {"type": "string", "contentMediaType": "application/octet-stream"},
        {"anyOf": [FILE, {"type": "null"}]},
        {"contentMediaType": "image/png"},
    ],
)
def test_a_file_of_a_multipart_form_takes_text_or_base64(file):
    schema = {**FIELDS, "properties": {**FIELDS["properties"], "file": file}}
    one = with_body(schema)

    assert one.config["multipart"]["file"] == {"content": "{file}"}
    argument = one.args_schema["properties"]["file"]
    assert [*argument["properties"]] == ["filename", "text", "base64"]
    assert one.args_schema["required"] == ["file"]
    body = sent(one, note="n", file={"filename": "a.txt", "text": "hi"}).content
    assert b'name="file"; filename="a.txt"' in body


def test_several_files_are_a_list():
    files = {"type": "array", "items": FILE}
    one = with_body({"type": "object", "properties": {"files": files}})

    argument = one.args_schema["properties"]["files"]
    assert argument["items"]["properties"].keys() == {"filename", "text", "base64"}
    body = sent(one, files=[{"text": "a"}, {"text": "b"}]).content
    assert body.count(b'name="files"; filename="files"') == 2


def test_a_multipart_form_keeps_type_and_base64_text():
    schema = {
        "type": "object",
        "properties": {
            "photo": FILE,
            "raw": {"type": "string", "contentEncoding": "base64"},
        },
    }
    encoding = {"photo": {"contentType": "image/png", "headers": {"X": {}}}}

    one = with_body(schema, encoding=encoding)

    assert one.config["multipart"] == {
        "photo": {"content": "{photo}", "content_type": "image/png"},
        "raw": "{raw}",
    }
    assert one.omitted == ["the headers of the part “photo”"]


def test_a_form_with_files_is_preferred_to_the_one_without():
    form = {"schema": {"type": "object", "properties": {"note": {"type": "string"}}}}
    content = {
        "application/x-www-form-urlencoded": form,
        "multipart/form-data": {"schema": FIELDS},
    }

    assert "multipart" in imported({"requestBody": {"content": content}}).config


def test_the_parts_of_a_form_are_put_together():
    parts = {"allOf": [FIELDS, {"type": "object", "properties": {"x": FILE}}]}

    assert [*with_body(parts).config["multipart"]] == ["note", "file", "x"]


@pytest.mark.parametrize("kind", ["multipart/form-data", FORM])
@pytest.mark.parametrize("schema", [{"type": "object"}, {"oneOf": [FIELDS, COLOR]}, {}])
def test_a_form_whose_fields_are_not_listed_is_refused(kind, schema):
    assert with_body(schema, kind).flaw == "the fields of its form are not listed"


def test_form_fields_have_their_styles():
    schema = {"type": "object", "properties": {"a": COLOR, "b": LIST, "c": LIST}}
    encoding = {"a": {"style": "deepObject"}, "b": {"explode": False}, "c": 7}

    one = with_body(schema, FORM, encoding=encoding)

    got = sent(one, a={"R": 1}, b=["x", "y"], c=["x", "y"])
    assert got.content == b"a%5BR%5D=1&b=x%2Cy&c=x&c=y"


@pytest.mark.parametrize(("required", "flawed"), [([], False), (["a"], True)])
def test_a_form_field_in_an_unknown_style_is_named_or_refused(required, flawed):
    schema = {"type": "object", "properties": {"a": COLOR}, "required": required}

    one = with_body(schema, FORM, encoding={"a": {"style": "tabs"}})

    what = "the form field “a” in the style tabs"
    assert what in one.flaw if flawed else one.omitted == [what]


def test_a_field_and_a_parameter_of_one_name_cannot_have_two_styles():
    schema = {"type": "object", "properties": {"c": COLOR}}
    content = {FORM: {"schema": schema, "encoding": {"c": {"style": "deepObject"}}}}
    query = {"name": "c", "in": "query", "schema": LIST}

    one = imported({"parameters": [query], "requestBody": {"content": content}})

    assert one.flaw == "“c” is both a query parameter and a form field"


def test_more_parameters_than_anybody_writes_are_refused():
    many = [{"name": f"p{n}", "in": "query"} for n in range(501)]

    assert imported({"parameters": many}).flaw == "it has more than 500 parameters"


def test_a_key_in_a_cookie_can_be_a_credential():
    scheme = {"type": "apiKey", "in": "cookie", "name": "sid"}
    body = {"openapi": "3.0.0", "components": {"securitySchemes": {"s": scheme}}}

    document = parse_openapi_document(json.dumps(body))
    assert find_required_credential(document) == ("header", "Cookie")


UNHASHABLE = [[1], {"a": 1}]
ODD_SCHEMAS = [
    {"type": UNHASHABLE},
    {"type": {"a": 1}},
    {"anyOf": [{"type": UNHASHABLE}]},
    {"type": "object", "properties": {"a": {}}, "required": UNHASHABLE},
    {"allOf": [{"properties": {"a": {}}, "required": UNHASHABLE}]},
]


@pytest.mark.parametrize("schema", ODD_SCHEMAS)
@pytest.mark.parametrize("kind", ["application/json", "multipart/form-data", FORM])
def test_lists_where_names_belong_break_nothing(schema, kind):
    odd = {"schema": schema, "style": UNHASHABLE, "explode": UNHASHABLE}
    parameters = [
        {"name": "q", "in": "query", **odd},
        {"name": "h", "in": "header", "schema": schema},
        {"name": "c", "in": "query", "content": {kind: {"schema": schema}}},
    ]
    media = {"schema": schema, "encoding": {"a": UNHASHABLE}}

    one = imported({"parameters": parameters, "tags": UNHASHABLE})
    other = imported({"requestBody": {"content": {kind: media}}})

    assert one.tags == ()
    assert {bool(one.config) or bool(one.flaw), bool(other.config or other.flaw)} == {
        True
    }


@pytest.mark.parametrize("url", ["https://[x", "//[", "http://["])
def test_a_server_that_is_no_url_is_refused(url):
    document = {"openapi": "3.0.0", "servers": [{"url": url}], "paths": {"/": GET}}

    (one,) = list_operations(parse_openapi_document(json.dumps(document)))

    assert one.flaw == "the document has no server; enter the server URL"
