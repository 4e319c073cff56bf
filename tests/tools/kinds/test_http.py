"""HTTP tools against a real server on loopback."""

import threading
from contextlib import contextmanager

import pytest

from tests.tools.http_server import Answer, serve
from tests.tools.rows import make_tool, make_user
from tools.definition.freeze import freeze_tool
from tools.errors import CallCanceled, ToolFailed, ToolTimedOut
from tools.kinds.registry import call_tool
from tools.models import Credential
from tools.net.deadline import Deadline
from tools.net.http_exchange import Response
from tools.secrets import seal
from tools.spec import ToolSpec


@pytest.fixture(autouse=True)
def _loopback_is_listed(settings):
    settings.PRIVATE_HOSTS = "tool=127.0.0.1"
    settings.OWN_PORTS = []


def call(url, arguments=None, *, deadline=None, key="", spec=None, **config):
    fields = {"name": "t", "kind": "http", "effect": "read", **(spec or {})}
    spec = ToolSpec(**fields, config={"url": url, **config})
    deadline = deadline or Deadline(seconds=10)
    return call_tool(spec, arguments or {}, deadline=deadline, idempotency_key=key)


def says(*answers):
    rest = list(answers)
    return lambda got: rest.pop(0) if len(rest) > 1 else rest[0]


ORDER = {"id": "o_1", "items": [{"name": "tea"}]}


def test_json_comes_back_as_a_value():
    with serve(says(Answer(ORDER))) as server:
        assert call(f"{server.url}/orders/{{id}}", {"id": "o_1"}) == ORDER

    assert (server.got[0].method, server.got[0].path) == ("GET", "/orders/o_1")


def test_a_part_of_the_answer_can_be_picked():
    with serve(says(Answer(ORDER))) as server:
        assert call(server.url, pick="/items/0/name") == "tea"


def test_text_comes_back_as_it_is():
    with serve(says(Answer("héllo".encode(), content_type="text/plain"))) as server:
        assert call(server.url) == "héllo"


@pytest.mark.parametrize(
    ("charset", "text"),
    [
        *(("latin-1", "hÃ©llo"), ("'utf-8'", "héllo"), ("UTF8", "héllo")),
        *(("hex", "héllo"), ("zlib", "héllo"), ("idna", "héllo"), ("rot13", "héllo")),
        *(("punycode", "héllo"), ("undefined", "héllo"), ("utf-7", "héllo")),
        *(("unicode_escape", "héllo"), ("nothing", "héllo"), ("", "héllo")),
    ],
)
@pytest.mark.parametrize("status", [200, 500])
def test_an_encoding_that_is_none_of_text_is_not_believed(charset, text, status):
    body, kind = "héllo".encode(), f"text/plain; charset={charset}"
    with serve(says(Answer(body, status=status, content_type=kind))) as server:
        if status == 200:
            assert call(server.url) == text
        else:
            with pytest.raises(ToolFailed, match=f"answered 500: {text}"):
                call(server.url)


@pytest.mark.parametrize("charset", ["utf-16", "utf-32", "utf-16-le", "shift_jis"])
def test_bytes_that_do_not_fit_their_encoding_become_marks(charset):
    answer = Answer(b"\xff\x01\x81", content_type=f"text/plain; charset={charset}")
    with serve(says(answer)) as server:
        assert isinstance(call(server.url), str)


def test_encodings_of_other_things_than_text_unpack_nothing():

    for charset in ("punycode", "zlib", "bz2", "idna"):
        Response(200, {"content-type": f"a/b; charset={charset}"}, LONG, "x").text  # noqa: B018  # it must end


LONG = b"xn--" + b"9" * 300_000


def test_an_empty_answer_is_its_status():
    with serve(says(Answer(b"", status=204))) as server:
        assert call(server.url) == {"status": 204}


def test_a_body_is_sent():
    with serve(says(Answer({}))) as server:
        call(server.url, {"a": [1, 2]}, method="POST")

    assert server.got[0].json() == {"a": [1, 2]}


@pytest.mark.parametrize(
    ("answer", "config", "why"),
    [
        (Answer({"error": "no such order"}, status=404), {}, "404: .*no such order"),
        (Answer(b"", status=500), {}, "answered 500."),
        (Answer(b"\x89PNG", content_type="image/png"), {}, "image/png, no text"),
        (Answer(b"a\0b", content_type="text/plain"), {}, "no text"),
        (Answer(ORDER), {"pick": "/nothing"}, "there are 'id', 'items'"),
        (Answer(b"<p>", content_type="text/html"), {"pick": "/a"}, "instead of JSON"),
        (Answer(b"x" * 3000), {"max_bytes": 2000}, "larger than 2,000 bytes"),
        (Answer(b"", 302, {"location": "http://10.0.0.1/"}), {}, "not allowed"),
        (Answer(b"", 302, {"location": "/again"}), {}, "redirects more than"),
    ],
)
def test_an_answer_that_is_no_result_is_a_sentence(answer, config, why):
    with serve(says(answer)) as server, pytest.raises(ToolFailed, match=why):
        call(server.url, **config)


def test_broken_json_is_given_as_text():
    with serve(says(Answer(b"{oops"))) as server:
        assert call(server.url) == "{oops"


def test_a_tool_reaches_no_private_address_by_itself(settings):
    settings.PRIVATE_HOSTS = ""
    with serve(says(Answer(ORDER))) as server, pytest.raises(ToolFailed, match="allow"):
        call(server.url)

    assert server.got == []


def test_a_tool_reaches_only_its_hosts():
    with serve(says(Answer(ORDER))) as server, pytest.raises(ToolFailed, match="among"):
        call(server.url, hosts=["api.example.com"])

    assert server.got == []


@contextmanager
def hanging_server():
    """Serve requests that are answered only after the block has ended."""
    is_over = threading.Event()

    def hang(got):
        is_over.wait(60)
        return Answer(ORDER)

    with serve(hang) as server:
        try:
            yield server
        finally:
            is_over.set()


def test_a_server_that_hangs_ends_with_the_time_of_the_tool():
    with hanging_server() as server, pytest.raises(ToolTimedOut, match=r"0\.3 s"):
        call(server.url, spec={"timeout": 0.3})


def test_stop_ends_a_hanging_request():
    flag = threading.Event()
    threading.Timer(0.2, flag.set).start()

    with hanging_server() as server, pytest.raises(CallCanceled):
        call(server.url, deadline=Deadline(flag=flag))


@pytest.mark.parametrize("effect", ["side_effect", "idempotent", "read"])
def test_every_call_carries_a_key_that_stays_when_it_is_repeated(effect):
    with serve(says(Answer({}))) as server:
        call(server.url, key="7:3", method="POST", spec={"effect": effect})

    assert server.got[0].headers.get("idempotency-key") == "7:3"


def test_a_wrong_definition_is_a_sentence():
    with pytest.raises(ToolFailed, match="not configured correctly. url"):
        call("nowhere")


def tool_with(credential, url, **more):
    tool = make_tool(
        kind="http",
        effect="read",
        config={"url": url, **more},
        args_schema={"type": "object", "properties": {}},
        credential=credential,
    )
    return freeze_tool(tool)


def make_credential(**more):
    return Credential.objects.create(
        **{
            "name": "orders",
            "owner": make_user(),
            "hosts": ["127.0.0.1"],
            "sealed": seal("s3cret"),
            **more,
        }
    )


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("kind", "field", "header", "value"),
    [
        ("bearer", "", "authorization", "Bearer s3cret"),
        ("header", "X-Key", "x-key", "s3cret"),
        ("basic", "ann", "authorization", "Basic YW5uOnMzY3JldA=="),
    ],
)
def test_a_credential_is_sent_to_its_host(kind, field, header, value):
    with serve(says(Answer({}))) as server:
        row = make_credential(kind=kind, field=field, hosts=[server.url])
        call_tool(tool_with(row, server.url), {}, deadline=Deadline(seconds=5))

    assert server.got[0].headers[header] == value


@pytest.mark.django_db
def test_a_credential_can_be_a_query_parameter():
    with serve(says(Answer({}))) as server:
        row = make_credential(kind="query", field="key", hosts=[server.url])
        spec = tool_with(row, f"{server.url}/?a=1")
        call_tool(spec, {}, deadline=Deadline(seconds=5))

    assert server.got[0].query == {"a": "1", "key": "s3cret"}
    assert "s3cret" not in spec.model_dump_json()


@pytest.mark.django_db
def test_a_credential_is_never_sent_to_another_host():
    row = make_credential(hosts=["api.example.com"])

    with (
        serve(says(Answer({}))) as server,
        pytest.raises(ToolFailed, match="not bound"),
    ):
        call_tool(tool_with(row, server.url), {}, deadline=Deadline(seconds=5))

    assert server.got == []


@pytest.mark.django_db
def test_a_credential_without_a_secret_sends_nothing():
    row = make_credential(sealed="")

    with (
        serve(says(Answer({}))) as server,
        pytest.raises(ToolFailed, match="no secret is stored in it"),
    ):
        call_tool(tool_with(row, server.url), {}, deadline=Deadline(seconds=5))

    assert server.got == []


@pytest.mark.django_db
def test_a_credential_does_not_follow_a_redirect_to_another_host():
    with serve(says(Answer({}))) as other:
        away = Answer(b"", 302, {"location": other.url})
        with serve(says(away)) as server:
            row = make_credential(kind="header", field="X-Key", hosts=[server.url])
            call_tool(tool_with(row, server.url), {}, deadline=Deadline(seconds=5))

    assert server.got[0].headers["x-key"] == "s3cret"
    assert "x-key" not in other.got[0].headers


@pytest.mark.django_db
def test_a_secret_that_a_server_echoes_is_covered():
    echo = Answer({"you sent": "Bearer s3cret"}, status=403)

    with serve(says(echo)) as server, pytest.raises(ToolFailed) as caught:
        call_tool(
            tool_with(make_credential(hosts=[server.url]), server.url),
            {},
            deadline=Deadline(seconds=5),
        )

    assert "s3cret" not in str(caught.value)
    assert "[secret]" in str(caught.value)


@pytest.mark.django_db
def test_a_secret_that_a_server_echoes_in_escapes_is_covered():
    echo = Answer(rb'{"you \u0073ent": ["Bearer \u0073\u0033cret"]}')

    with serve(says(echo)) as server:
        spec = tool_with(make_credential(hosts=[server.url]), server.url)
        message = call_tool(spec, {}, deadline=Deadline(seconds=5))

    assert message == {"you sent": ["Bearer [secret]"]}


@pytest.mark.django_db
def test_a_credential_that_the_owner_lost_is_not_used():
    row = make_credential(owner=make_user("bob"))

    with (
        serve(says(Answer({}))) as server,
        pytest.raises(ToolFailed, match="may no longer use"),
    ):
        call_tool(tool_with(row, server.url), {}, deadline=Deadline(seconds=5))

    assert server.got == []


@pytest.mark.django_db
def test_a_secret_of_other_keys_is_a_sentence():
    row = make_credential(sealed="gAAAAA")

    with (
        serve(says(Answer({}))) as server,
        pytest.raises(ToolFailed, match="Type it in"),
    ):
        call_tool(tool_with(row, server.url), {}, deadline=Deadline(seconds=5))
