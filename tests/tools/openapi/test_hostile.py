"""Hostile OpenAPI documents in JSON, and the pages of the tools made of them."""

import json
import re

import pytest
from django.db import transaction
from django.test import Client
from django.urls import reverse
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from tests.fakes.outbreak import outbreaks
from tests.tools.rows import make_user
from tools.models import Tool

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

PAGE = "/admin/tools/tool/import/"
SERVER = "https://a.example"
PART = {"HX-Request": "true"}
"""Asks for the tested call alone: the page around it is opened and saved anyway."""

RAW = re.compile('"§(.*?)§"')
"""How a text stands for JSON that `json.dumps` would not write."""

LARGE, NAN, HALF, NUL = "§1e999§", "§NaN§", r'§"a\ud800b"§', r'§"a\u0000b"§'
LONG = "§" + "9" * 5000 + "§"


def written(value):
    """Return JSON, with what stands between § as it is."""
    text = json.dumps(value, ensure_ascii=False)
    return RAW.sub(
        lambda match: match[1].replace('\\"', '"').replace("\\\\", "\\"), text
    )


def document(paths, **more):
    return {"openapi": "3.1.0", "servers": [{"url": SERVER}], "paths": paths, **more}


def signed_in():
    client = Client()
    client.force_login(make_user("admin", is_staff=True, is_superuser=True))
    return client


def imported(text, base):
    """Import all of a document; return the tools, and all pages that were opened."""
    client = signed_in()
    given = {"document": text, "base": base}
    shown = client.post(PAGE, given, follow=True)
    page = shown.request["PATH_INFO"]
    made = client.post(page, {"all": "1"}) if page != PAGE else shown
    tools = list(Tool.objects.all())
    pages = [shown, made, client.get("/admin/tools/tool/"), client.get("/tools/")]
    for tool in tools[:2]:
        pages += pages_of(client, tool)
    return tools, pages


def pages_of(client, tool):
    """Open, test and save one tool on its page, as a person would."""
    page = f"/tools/{tool.slug}/"
    opened = client.get(page)
    fields, pane = opened.context["form"], opened.context["pane"]
    sent = {fields.add_prefix(one.name): one.value() for one in fields}
    sent = {name: value for name, value in sent.items() if value not in (None, False)}
    sent["seen"] = tool.revision
    arguments = {
        one.html_name: one.value() if one.value() is not None else "1"
        for one in pane.arguments
    }
    return [
        opened,
        client.post(f"{page}try/", {**arguments, "preview": "1"}, headers=PART),
        client.post(f"{page}try/", {**sent, **arguments, "preview": "1"}, headers=PART),
        client.post(page, sent),
        client.get(reverse("tool-export"), {"slug": tool.slug}),
    ]


def assert_nothing_broke(text, base=SERVER):
    """Raise where a page failed, something left the process, or a tool is on."""
    with outbreaks() as seen:
        tools, pages = imported(text, base)
    assert {page.status_code for page in pages} <= {200, 302}
    assert seen == []
    assert not any(tool.enabled for tool in Tool.objects.all())
    assert {tool.visibility for tool in tools} <= {"private"}
    return tools


def schema_document(schema):
    """Return a document that has a schema wherever one may stand.

    The last operation is for schemas that spoil the first ones.
    """
    whole = {"type": "object", "properties": {"x": schema}}
    query = {"name": "q", "in": "query", "schema": schema}
    return document(
        {
            "/a": {"put": {"parameters": [query], "requestBody": body_of(whole)}},
            "/b": {"post": {"requestBody": body_of(schema)}},
            "/c": {"get": {"parameters": [query]}},
        },
        components={"schemas": {"A": schema}},
    )


def body_of(schema, kind="application/json"):
    return {"content": {kind: {"schema": schema}}}


def nested(depth, inner):
    for _ in range(depth):
        inner = {"type": "object", "properties": {"x": inner}}
    return inner


SCHEMAS = {
    "a large number as limit": {"type": "number", "maximum": LARGE},
    "a large number as length": {"type": "string", "maxLength": LARGE},
    "a large number as default": {"type": "number", "default": LARGE},
    "a large number as choice": {"enum": [1, LARGE]},
    "a long number": {"type": "integer", "minimum": LONG, "default": LONG},
    "NaN": {"type": "number", "default": NAN, "minimum": NAN, "const": NAN},
    "NUL as choice": {"enum": [NUL]},
    "NUL as default": {"type": "string", "default": NUL},
    "NUL as pattern": {"type": "string", "pattern": NUL},
    "NUL as description": {"type": "string", "description": NUL},
    "half a character as choice": {"enum": [HALF]},
    "half a character as default": {"type": "string", "default": HALF},
    "half a character as description": {"type": "string", "description": HALF},
    "half a character as title": {"type": "string", "title": HALF},
    "true": True,
    "false": False,
    "properties that are true and false": {"properties": {"a": True, "b": False}},
    "items that are false": {"type": "array", "items": False},
    "not true": {"not": True},
    "ten deep": nested(10, {"type": "string"}),
    "two hundred deep": nested(200, {"type": "string"}),
    "itself": {"$ref": "#/components/schemas/A"},
    "itself among others": {"anyOf": [{"$ref": "#/components/schemas/A"}, True]},
    "the whole document": {"$ref": "#"},
    "the paths": {"$ref": "#/paths"},
    "a reference to elsewhere": {"$ref": "http://127.0.0.1:1/x"},
    "a reference that is no text": {"$ref": 7},
    "a reference with NUL": {"$ref": NUL},
    "no type at all": {"type": "thing"},
    "types of all sorts": {"type": ["array", None, 7, {}]},
    "choices that are no list": {"enum": {"a": 1}},
    "no choices": {"enum": []},
    "choices of all sorts": {"enum": [None, True, 1, 1.5, "x", [], {}, [LARGE]]},
    "properties that are a list": {"type": "object", "properties": ["a"]},
    "required that is a text": {"type": "object", "required": "abc"},
    "required that has all sorts": {"type": "object", "required": [1, None, {}]},
    "names without letters": {"properties": {"": {}, " ": {}, "\n": {}, "-": {}}},
    "a name with NUL": {"properties": {"§": {}, r"a": {"properties": {NUL: {}}}}},
    "names of methods": {"properties": {"__class__": {}, "clean": {}, "data": {}}},
    "a description that is no text": {"description": [1], "title": {}},
    "a description of pages": {"type": "string", "description": "x" * 99_999},
    "anyOf that is no list": {"anyOf": {"type": "string"}, "oneOf": 5},
    "parts that are nothing": {"anyOf": [None, 5, "x"], "allOf": [[]]},
    "lengths that are texts": {"minLength": "a", "maxItems": [], "multipleOf": 0},
    "a pattern for ever": {"type": "string", "pattern": "(a+)+$"},
    "a default of another type": {"type": "integer", "default": {"a": []}},
    "markup": {"type": "string", "description": "<script>alert(1)</script>"},
}


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS.keys())
def test_no_schema_breaks_a_page_of_its_tool(schema):
    assert_nothing_broke(written(schema_document(schema)))


OPERATIONS = {
    "all sorts as operation": {"get": [], "put": 5, "post": None, "delete": "x"},
    "all sorts as parameters": {"get": {"parameters": {"a": 1}}},
    "all sorts as parameter": {"get": {"parameters": [1, None, [], {"name": 5}]}},
    "names of all sorts": {
        "get": {
            "operationId": {"a": 1},
            "summary": ["x"],
            "description": LARGE,
            "parameters": [{"name": "", "in": "query"}, {"name": NUL, "in": "header"}],
        }
    },
    "an id with half a character": {"get": {"operationId": HALF, "summary": HALF}},
    "an id with NUL": {"get": {"operationId": NUL, "description": NUL}},
    "an id of nothing but marks": {"get": {"operationId": "///"}},
    "a parameter with half a character": {
        "get": {"parameters": [{"name": HALF, "in": "query", "description": HALF}]}
    },
    "a query named half a character that must be": {
        "get": {"parameters": [{"name": HALF, "in": "query", "required": True}]}
    },
    "a header named NUL": {"get": {"parameters": [{"name": NUL, "in": "header"}]}},
    "a header with a line break": {
        "get": {"parameters": [{"name": "a\r\nb", "in": "header", "required": True}]}
    },
    "a host header": {
        "get": {"parameters": [{"name": "Host", "in": "header", "required": True}]}
    },
    "a body of all sorts": {"post": {"requestBody": [1]}},
    "content of all sorts": {"post": {"requestBody": {"content": {"a": 1}}}},
    "a body that is itself": {"post": {"requestBody": {"$ref": "#/paths/~1x/post"}}},
    "a path item that is itself": {"$ref": "#/paths/~1x"},
    "servers of all sorts": {"servers": 5, "get": {"servers": [7]}},
    "a server inside": {"servers": [{"url": "http://127.0.0.1:1/"}], "get": {}},
    "a server with half a character": {"servers": [{"url": HALF}], "get": {}},
    "a server with NUL": {"servers": [{"url": NUL}], "get": {}},
    "a server that is a file": {"servers": [{"url": "file:///etc/passwd"}], "get": {}},
    "a form of all sorts": {
        "post": {"requestBody": body_of({"properties": {HALF: {}, "a b": True}},
                                        "application/x-www-form-urlencoded")}
    },
}  # fmt: skip


@pytest.mark.parametrize("item", OPERATIONS.values(), ids=OPERATIONS.keys())
def test_no_operation_breaks_a_page_of_its_tool(item):
    assert_nothing_broke(written(document({"/x": item})), base="")


def around(paths, before=""):
    return '{"openapi": "3.1.0", ' + before + '"paths": {' + paths + "}}"


X = '"/x": {"get": {}}'
TEXTS = {
    "NUL in the title": around(X, r'"info": {"title": "a\u0000b"}, '),
    "half a character in the title": around(X, r'"info": {"title": "\ud800"}, '),
    "NUL in a path": around(r'"/\u0000": {"get": {}}'),
    "half a character in a path": around(r'"/\ud800": {"get": {}}'),
    "half a character as placeholder": around(
        r'"/{\ud800}": {"get": {"parameters": [{"name": "\ud800", "in": "path"}]}}'
    ),
    "paths without a slash": around('"": {"get": {}}, "x": {"get": {}}, "//": {}'),
    "security of all sorts": around(
        X,
        '"components": {"securitySchemes": {"a": {"type": [], "in": 1e999}, "b": 7}}, ',
    ),
    "security without a name": around(
        X,
        r'"components": {"securitySchemes": {"a": {"type": "apiKey", "in": "query",'
        r' "name": "\ud800"}}}, ',
    ),
    "components that are a list": around(X, '"components": [], '),
    "a key twice": around('"/x": {"get": 1}, "/x": {"get": {"operationId": 1e999}}'),
    "a version that is a number": '{"openapi": 3.1, "paths": {}}',
    "a version that is too large": '{"openapi": 1e999}',
    "paths that are no number": '{"openapi": "3.0.0", "paths": NaN}',
    "a text": '"openapi"',
    "no number": "NaN",
    "a long number": "9" * 5000,
    "a deep object": '{"a":' * 100_000,
    "a mark of byte order": "\ufeff" + around(X),
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_no_document_breaks_the_page(text):
    assert_nothing_broke(text)


def test_the_same_id_again_and_again_gives_each_tool_a_name_of_its_own():
    paths = {f"/x{n}": {"get": {"operationId": "a" * 70}} for n in range(12)}

    tools = assert_nothing_broke(written(document(paths)))

    assert len({tool.name for tool in tools}) == len(tools) == 12
    assert all(len(tool.name) <= 64 for tool in tools)


def test_of_a_thousand_operations_those_are_made_that_are_chosen():
    paths = {f"/x{n}": {"get": {"operationId": "same"}} for n in range(1000)}
    given = {"document": written(document(paths)), "base": SERVER}
    client = signed_in()

    page = client.post(PAGE, given).headers["Location"]
    chosen = {"operation": ["GET /x0", "GET /x899"], "create": "1"}
    made = client.post(page, chosen)

    assert len(client.get(page).context["choice"].operations) == 1000
    assert made.status_code == 302
    assert {tool.name for tool in Tool.objects.all()} == {"same", "same_900"}


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, -1, 2**70, 0.5, LARGE, "§-1e999§", NAN, LONG]),
    st.sampled_from([HALF, NUL, "", "x", "{x}", "{", "#/components/schemas/A", "#/"]),
    st.sampled_from(
        ["object", "array", "string", "integer", "query", "path", "header"]
    ),
)
WORDS = st.sampled_from(
    [
        *("type", "properties", "items", "enum", "const", "default", "required"),
        *("$ref", "allOf", "anyOf", "oneOf", "not", "pattern", "format", "title"),
        *("minimum", "maximum", "exclusiveMinimum", "minLength", "maxItems", "if"),
        *("additionalProperties", "patternProperties", "description", "nullable"),
        *("$id", "$schema", "$anchor", "$dynamicRef", "dependentRequired", "x", ""),
    ]
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=5)
    ),
    max_leaves=12,
)
PARAMETERS = st.fixed_dictionaries(
    {"name": ANYTHING, "in": st.sampled_from(["query", "path", "header"])},
    optional={"schema": ANYTHING, "required": ANYTHING, "style": ANYTHING},
)


@settings(
    max_examples=20,
    derandomize=True,  # a find is mended, not met by chance
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    schema=st.dictionaries(WORDS, ANYTHING, max_size=6),
    parameter=PARAMETERS,
    rest=st.fixed_dictionaries(
        {},
        optional={
            "operationId": ANYTHING,
            "summary": ANYTHING,
            "parameters": ANYTHING,
            "servers": ANYTHING,
            "requestBody": ANYTHING,
        },
    ),
)
def test_wrong_types_break_nothing_anywhere(schema, parameter, rest):
    given = schema_document(schema)
    given["paths"]["/x"] = {
        "get": rest,
        "put": {"parameters": [parameter], "requestBody": body_of(schema)},
    }
    with transaction.atomic():
        tools = assert_nothing_broke(written(given))
        event(f"made {len(tools)} tools")
        transaction.set_rollback(True)
