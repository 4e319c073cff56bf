"""What a server parses from the query and body that an HTTP tool sends."""

import io
from base64 import b64encode
from urllib.parse import parse_qsl

import pytest
from django.core.files.uploadhandler import MemoryFileUploadHandler
from django.http import QueryDict
from django.http.multipartparser import MultiPartParser

from tests.tools.http_server import Answer, serve
from tools.errors import ToolFailed
from tools.kinds.registry import call_tool
from tools.net.deadline import Deadline
from tools.spec import ToolSpec

PNG = b"\x89PNG\r\n\x1a\n\0--x\r\n"


@pytest.fixture(autouse=True)
def _loopback_is_listed(settings):
    settings.PRIVATE_HOSTS = "tool=127.0.0.1"
    settings.OWN_PORTS = []


def received(arguments, **config):
    """Return the one request that reached the server."""
    with serve(lambda got: Answer({"target": got.target})) as server:
        config = {"method": "POST", "url": f"{server.url}/x", **config}
        spec = ToolSpec(name="t", kind="http", effect="read", config=config)
        call_tool(spec, arguments, deadline=Deadline(seconds=10))
        return server.got[0]


def fields_and_files(got):
    """Return what Django reads from a multipart request."""
    meta = {
        "CONTENT_TYPE": got.headers["content-type"],
        "CONTENT_LENGTH": len(got.body),
    }
    fields, files = MultiPartParser(
        meta, io.BytesIO(got.body), [MemoryFileUploadHandler()]
    ).parse()
    return dict(fields.lists()), {
        name: [(one.name, one.content_type, one.read()) for one in listed]
        for name, listed in files.lists()
    }


LIST, OBJECT = ["blue", "a b", "x|y"], {"R": 100, "G": "200"}
DEEP = {"price": {"gte": 10, "in": [1, 2]}, "rows": [{"a": True}], "none": None}


@pytest.mark.parametrize(
    ("style", "value", "pairs"),
    [
        ({}, LIST, [("c", "blue"), ("c", "a b"), ("c", "x|y")]),
        ({"joined": ["c"]}, ["a", "b"], [("c", "a,b")]),
        ({"joined": ["c"]}, OBJECT, [("c", "R,100,G,200")]),
        ({"styles": {"c": "spaceDelimited"}}, ["a", "b"], [("c", "a b")]),
        ({"styles": {"c": "spaceDelimited"}}, OBJECT, [("c", "R 100 G 200")]),
        ({"styles": {"c": "pipeDelimited"}}, ["a", "b"], [("c", "a|b")]),
        ({"styles": {"c": "pipeDelimited"}}, [], []),
        ({"styles": {"c": "deepObject"}}, OBJECT, [("c[R]", "100"), ("c[G]", "200")]),
        (
            {"styles": {"c": "deepObject"}},
            DEEP,
            [
                *(("c[price][gte]", "10"), ("c[price][in]", "1")),
                *(("c[price][in]", "2"), ("c[rows][0][a]", "true")),
            ],
        ),
        ({"styles": {"c": "json"}}, ["a"], [("c", '["a"]')]),
        ({"styles": {"c": "json"}}, "a", [("c", '"a"')]),
        ({"styles": {"c": "deepObject"}}, None, []),
    ],
)
@pytest.mark.parametrize("place", ["query", "form"])
def test_lists_and_objects_arrive_in_their_style(place, style, value, pairs):
    got = received({"c": value}, **{place: {"c": "{c}"}}, **style)

    sent = got.target.partition("?")[2] if place == "query" else got.body.decode()
    assert parse_qsl(sent) == pairs
    assert dict(QueryDict(sent).items()).keys() == {name for name, _ in pairs}


def test_an_object_sets_no_parameter_but_its_own():
    got = received(
        {"f": {"]&admin": "1", "x][y": "&b=2"}},
        query={"f": "{f}"},
        styles={"f": "deepObject"},
    )

    names = [name for name, _ in parse_qsl(got.target.partition("?")[2])]
    assert names == ["f[]&admin]", "f[x][y]"]


UPLOAD = {
    "note": "{note}",
    "tags": "{tags}",
    "about": "{about}",
    "file": {"content": "{file}"},
}


def test_fields_and_a_text_file_arrive():
    fields, files = fields_and_files(
        received(
            {
                **{"note": "é\r\n--", "tags": ["a", "b"], "about": {"k": 1}},
                "file": "id,name\n1,tea\n",
            },
            multipart=UPLOAD,
        )
    )

    assert fields == {"note": ["é\r\n--"], "tags": ["a", "b"], "about": ['{"k":1}']}
    assert files == {"file": [("file", "text/plain", b"id,name\n1,tea\n")]}


@pytest.mark.parametrize(
    ("part", "value", "file"),
    [
        ({}, {"filename": "a.csv", "text": "1"}, ("a.csv", "text/csv", b"1")),
        (
            {},
            {"filename": "a.png", "base64": b64encode(PNG).decode()},
            ("a.png", "image/png", PNG),
        ),
        (
            {"encoding": "base64", "filename": "{name}.png"},
            b64encode(PNG).decode(),
            ("shop.png", "image/png", PNG),
        ),
        (
            {"encoding": "base64", "content_type": "image/webp"},
            f"data:image/png;base64,{b64encode(PNG).decode()}",
            ("file", "image/webp", PNG),
        ),
        ({"filename": "a b.bin"}, "", ("a b.bin", "application/octet-stream", b"")),
        ({}, {"text": "x", "filename": 'a";x="\r\nX: 1'}, None),
    ],
)
def test_a_file_arrives_as_text_or_bytes(part, value, file):
    config = {"file": {"content": "{file}", **part}}

    got = received({"file": value, "name": "shop"}, multipart=config)

    _, files = fields_and_files(got)
    if file:
        assert files == {"file": [file]}
    assert got.body.count(b"Content-Disposition") == 1
    assert b"\r\nX: 1" not in got.body


def test_several_files_arrive_under_one_name():
    value = [{"filename": "a.txt", "text": "1"}, {"filename": "b.txt", "text": "2"}]

    _, files = fields_and_files(received({"file": value}, multipart=UPLOAD))

    assert [name for name, _, _ in files["file"]] == ["a.txt", "b.txt"]


def test_absent_fields_and_files_are_left_out():
    fields, files = fields_and_files(received({"note": "x"}, multipart=UPLOAD))

    assert (fields, files) == ({"note": ["x"]}, {})
    assert received({}, multipart=UPLOAD).body == b""


def test_the_boundary_is_never_that_of_a_header():
    headers = {"Content-Type": "multipart/form-data; boundary=x"}

    fields, _ = fields_and_files(
        received({"note": "x"}, multipart=UPLOAD, headers=headers)
    )

    assert fields == {"note": ["x"]}


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"base64": "a b!"}, "it is not Base64"),
        ({"base64": "eA==", "text": "x"}, "as text or base64"),
        ({"filename": "a"}, "as text or base64"),
        (7, "as text or base64"),
    ],
)
def test_a_file_without_content_is_a_sentence(value, why):
    with pytest.raises(ToolFailed, match=f"The file 'file' cannot be sent: .*{why}"):
        received({"file": value}, multipart=UPLOAD)


def test_a_content_type_of_its_own_is_sent_once():
    got = received(
        {"a": 1}, headers={"Content-Type": "application/merge-patch+json"}, json="{a}"
    )

    assert got.headers["content-type"] == "application/merge-patch+json"


def test_a_list_in_a_header_has_commas():
    assert received({"t": ["a", "b"]}, headers={"X-T": "{t}"}).headers["x-t"] == "a,b"
