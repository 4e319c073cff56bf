"""What becomes of everything a Chat Completions server can do wrong."""

import threading

import pytest

from runs.engine.types import Reply
from runs.llm.errors import ModelCallError
from tests.fakes.model_server import model_server
from tests.llm.make import ADD, make_llm, make_request, soon
from tools.errors import CallCanceled, DeadlineExceeded
from tools.net.deadline import Deadline

SILENT = ("hang", "stalls")


def ask(fault: str, *, stream: bool = True, deadline: Deadline | None = None) -> Reply:
    """Ask a server that has `fault`."""
    with model_server() as server:
        seconds = 0.5 if fault in SILENT else 20.0
        llm = make_llm(server.base_url, timeout=seconds)
        request = make_request(model=f"fault-{fault}", stream=stream, tools=(ADD,))
        try:
            return llm.complete(
                request, deadline=deadline or soon(), on_text=lambda _: None
            )
        finally:
            llm.close()


REFUSALS = {
    "400": (
        "bad_request",
        False,
        "the request .status 400.. Correct .* It says: The r",
    ),
    "401": ("auth", False, "did not accept the key. Check the key of provider 'local'"),
    "403": ("forbidden", False, "denied access .status 403.. The key of provider"),
    "404": ("not_found", False, "has no model 'fault-404'. Select another"),
    "404-page": (
        "not_found",
        False,
        "Nothing was found at http.*/chat/completions. Check the b",
    ),
    "408": ("timeout", True, "timed out"),
    "409": ("overloaded", True, "failed with status 409"),
    "413": ("context_too_long", False, "too large"),
    "429": ("rate_limit", True, "is rate-limiting requests"),
    "500": ("overloaded", True, "failed with status 500"),
    "502": ("overloaded", True, "failed with status 502"),
    "503": ("overloaded", True, "failed with status 503"),
    "504": ("timeout", True, "timed out"),
    "529": ("overloaded", True, "failed with status 529"),
    "quota": ("rate_limit", False, "The account of provider 'local' has no credit"),
    "no-credit": ("rate_limit", False, "has no credit left"),
    "too-long": ("context_too_long", False, "longer than model 'fault-too-long' can"),
    "filtered": ("content_filter", False, "because of its content"),
    "reset": ("transport", True, "broke before the answer was complete"),
    "close": ("transport", True, "broke before the answer was complete"),
    "hang": ("timeout", True, "sent nothing for 0.5 s"),
    "stalls": ("timeout", True, "sent nothing for 0.5 s"),
    "cut": ("transport", True, "broke before the answer was complete"),
    "html": ("bad_reply", True, "sent a web page instead of a model's reply. Check"),
    "html-as-json": ("bad_reply", True, "sent a web page instead"),
    "empty": ("bad_reply", True, "sent an empty answer instead"),
    "no-json": ("bad_reply", True, "sent invalid JSON instead"),
    "no-object": ("bad_reply", True, "sent invalid JSON instead"),
    "no-choices": ("bad_reply", True, "sent an answer without choices instead"),
    "error-in-200": ("overloaded", True, "It says: Boom"),
    "50mb": ("bad_reply", False, "larger than 20,971,520 bytes"),
    "bomb": ("bad_reply", False, "larger than 20,971,520 bytes"),
    "long-number": ("bad_reply", True, "sent invalid JSON instead"),
    "deep": ("bad_reply", True, "sent invalid JSON instead"),
    "deep-enough": ("bad_reply", True, "sent invalid JSON instead"),
    "deep-error": ("bad_reply", True, "sent invalid JSON instead"),
    "stream-error": ("overloaded", True, "It says: Overloaded"),
    "stream-no-json": ("bad_reply", True, "a chunk that is not JSON"),
    "stream-empty": ("bad_reply", True, "a stream without a reply"),
    "stream-comments": ("bad_reply", True, "a stream without a reply"),
    "ended": ("transport", True, "ended in the middle of the reply"),
    "script-over": ("bad_request", False, "The script has no reply left"),
}
STREAM_ONLY = ("stream-", "ended", "cut", "stalls")


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("fault", REFUSALS)
def test_each_fault_has_its_class_and_sentence(fault, stream):
    if not stream and fault.startswith(STREAM_ONLY):
        fault = "500"
    code, may_retry, sentence = REFUSALS[fault]

    with pytest.raises(ModelCallError, match=sentence) as caught:
        ask(fault, stream=stream)
    assert (caught.value.code, caught.value.may_retry) == (code, may_retry)
    assert "sk-secret-key" not in str(caught.value)


SHOWN = {"stream-error": True, "ended": True, "stalls": True, "500": False}


@pytest.mark.parametrize("fault", SHOWN)
def test_a_failure_says_whether_text_was_shown(fault):
    with pytest.raises(ModelCallError) as caught:
        ask(fault)
    assert caught.value.has_streamed is SHOWN[fault]


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_a_reply_cut_by_length_is_a_reply(stream):
    reply = ask("length", stream=stream)

    assert (reply.text, reply.finish_reason) == ("It ends in the mid", "length")


def test_a_missing_last_event_does_not_matter():
    assert ask("no-done").text == "Hello from the fake."


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize(
    ("fault", "ids"),
    [
        ("same-ids", ["c1", "c1_1", "c1_2"]),
        ("no-ids", ["call_0", "call_1"]),
        ("200-calls", [f"c{n}" for n in range(200)]),
        ("bad-arguments", ["c1"]),
    ],
)
def test_calls_have_an_id_each_and_keep_their_arguments(fault, ids, stream):
    reply = ask(fault, stream=stream)

    assert [call.id for call in reply.tool_calls] == ids
    if fault == "bad-arguments":
        assert reply.tool_calls[0].arguments == '{"a": 1, "b'


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_odd_characters_come_through_for_the_cleaner(stream):
    assert ask("nul", stream=stream).text == "a\0b"
    assert ask("surrogate", stream=stream).text == "a\ud800b"
    assert ask("nan").native is not None


@pytest.mark.parametrize(
    ("fault", "least", "most"),
    [
        ("429-seconds", 7, 7),
        ("429-ms", 0.25, 0.25),
        ("429-date", 27, 31),
    ],
)
def test_retry_after_is_respected(fault, least, most):
    with pytest.raises(ModelCallError) as caught:
        ask(fault)
    assert caught.value.retry_after is not None
    assert least <= caught.value.retry_after <= most


def test_an_invalid_retry_after_is_ignored():
    with pytest.raises(ModelCallError) as caught:
        ask("429-nonsense")
    assert caught.value.retry_after is None


@pytest.mark.parametrize("fault", ["hang", "drip"])
def test_the_deadline_ends_a_call_that_never_ends(fault):

    with pytest.raises(DeadlineExceeded):
        ask(fault, deadline=Deadline(seconds=0.3), stream=False)


@pytest.mark.parametrize("fault", ["hang", "drip", "stalls"])
def test_stop_ends_a_call_that_never_ends(fault):
    flag = threading.Event()
    threading.Timer(0.1, flag.set).start()

    with pytest.raises(CallCanceled):
        ask(fault, deadline=Deadline(seconds=30, flag=flag))


def test_the_key_is_not_repeated_from_a_servers_answer():
    async def echoes(exchange):
        key = exchange.request.headers["authorization"]
        body = {"error": {"message": f"Wrong key {key}"}}
        await exchange.send_json(body, status=401)

    with model_server(faults={"echo": echoes}) as server:
        llm = make_llm(server.base_url)
        with pytest.raises(ModelCallError, match="Wrong key Bearer …"):
            llm.complete(make_request(model="fault-echo"), deadline=soon())
        llm.close()


@pytest.mark.parametrize("field", ["stream_options", "stop", "response_format"])
def test_an_optional_field_that_the_server_refuses_is_omitted(field):
    async def strict(exchange):
        if field in exchange.request.body:
            body = {"error": {"message": f"Unknown parameter: '{field}'."}}
            await exchange.send_json(body, status=400)
        else:
            await exchange.answer()

    with model_server(faults={"strict": strict}) as server:
        llm = make_llm(server.base_url)
        request = make_request(
            model="fault-strict", stop=("Observation:",), output_schema={}
        )
        for _ in range(2):
            reply = llm.complete(request, deadline=soon(), on_text=lambda _: None)
        llm.close()

    assert reply.text == "Hello from the fake."
    assert len(server.requests) == 3
