"""Calling registered functions as a run does."""

import threading

import pytest

from tests.support.timing import wait_until
from tests.tools import functions
from tests.tools.make import call_path
from tools.errors import CallCanceled, DeadlineExceeded, ToolFailed, ToolTimedOut
from tools.kinds.registry import call_tool
from tools.net.deadline import Deadline
from tools.sandbox import abandoned_calls as abandoned_calls
from tools.spec import ToolSpec

HERE = "tests.tools.functions"


@pytest.fixture
def gate():
    """Let calls that wait end with the test."""
    functions.gate.clear()
    yield functions.gate
    functions.gate.set()
    wait_until(lambda: abandoned_calls.count_abandoned_calls() == 0)


def test_returns_the_value_of_the_function():
    assert call_path(f"{HERE}:add", {"a": 1, "b": 2}) == 3


def test_a_function_that_keeps_to_hosts_is_given_them():
    spec = ToolSpec(
        name="f",
        config={"function": f"{HERE}:tells_hosts", "hosts": ["a.example"]},
    )

    assert call_tool(spec, {}, deadline=Deadline()) == ["a.example"]


@pytest.mark.parametrize("name", ["add", "tells_context"])
def test_one_that_does_not_say_so_is_not_called_where_hosts_are_named(name):
    config = {"function": f"{HERE}:{name}", "hosts": ["a.example"]}

    with pytest.raises(ToolFailed, match="does not declare keeps_hosts=True"):
        call_tool(ToolSpec(name="f", config=config), {}, deadline=Deadline())


def test_arguments_become_the_types_of_the_function():
    assert call_path(f"{HERE}:weekday", {"day": "2026-11-21"}) == 5


def test_one_text_is_the_argument_of_a_function_with_one():
    assert call_path(f"{HERE}:weekday", "2026-11-22") == 6


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"a": 1}, "b: Field required"),
        ({"a": "x", "b": 2}, "a: Input should be a valid integer"),
        ({"a": 1, "b": 2, "c": 3}, "c: Extra inputs are not permitted"),
        ("text", "valid dictionary"),
    ],
)
def test_wrong_arguments_are_a_sentence(arguments, why):
    with pytest.raises(ToolFailed, match=why):
        call_path(f"{HERE}:add", arguments)


@pytest.mark.parametrize(
    ("what", "value"),
    [
        ("dataclass", {"x": 1, "y": 2}),
        ("date", "2026-01-02"),
        ("decimal", "1.50"),
        ("set", [3]),
        ("nan", "NaN"),
        ("none", None),
    ],
)
def test_values_of_python_become_json(what, value):
    assert call_path(f"{HERE}:returns", {"what": what}) == value


@pytest.mark.parametrize(("what", "kind"), [("object", "object"), ("bytes", "bytes")])
def test_a_value_without_a_json_form_is_a_sentence_that_names_its_type(what, kind):
    with pytest.raises(ToolFailed, match=f"type '{kind}', which has no JSON form"):
        call_path(f"{HERE}:returns", {"what": what})


def test_a_value_that_holds_itself_is_a_sentence():
    with pytest.raises(ToolFailed, match="type 'list', which has no JSON form"):
        call_path(f"{HERE}:returns_itself")


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        ("value", "ValueError: the order is unknown"),
        ("empty", "The tool raised KeyError."),
        ("exit", "SystemExit: 3"),
        ("interrupt", "The tool raised KeyboardInterrupt."),
        ("told", "The shop is closed."),
    ],
)
def test_whatever_a_function_raises_is_a_sentence(what, sentence):
    with pytest.raises(ToolFailed) as caught:
        call_path(f"{HERE}:raises", {"what": what})

    assert str(caught.value) == sentence


def test_endless_recursion_is_a_sentence():
    with pytest.raises(ToolFailed, match="RecursionError"):
        call_path(f"{HERE}:recurses")


def test_a_call_past_the_time_of_its_tool_is_left_behind_and_counted(gate):
    before = abandoned_calls.count_abandoned_calls()

    with pytest.raises(ToolTimedOut, match="within 0.1 s"):
        call_path(f"{HERE}:waits", {"seconds": 10}, timeout=0.1)

    assert abandoned_calls.count_abandoned_calls() == before + 1


def test_a_call_that_comes_back_late_is_no_longer_counted(gate):
    with pytest.raises(ToolTimedOut):
        call_path(f"{HERE}:waits", {"seconds": 10}, timeout=0.05)

    gate.set()

    wait_until(lambda: abandoned_calls.count_abandoned_calls() == 0)


def test_the_end_of_the_runs_time_is_distinguished(gate):
    with pytest.raises(DeadlineExceeded):
        call_path(f"{HERE}:waits", {"seconds": 10}, seconds=0.1)


def test_stop_ends_a_hanging_call(gate):
    flag = threading.Event()
    threading.Timer(0.1, flag.set).start()

    with pytest.raises(CallCanceled):
        call_path(f"{HERE}:waits", {"seconds": 10}, flag=flag)


def test_threads_are_used_again():
    call_path(f"{HERE}:add", {"a": 1, "b": 2})
    before = threading.active_count()

    for _ in range(50):
        call_path(f"{HERE}:add", {"a": 1, "b": 2})

    assert threading.active_count() == before


def test_a_function_may_ask_for_its_context():
    message = call_path(f"{HERE}:tells_context", {"word": "hi"}, key="7:0")

    assert message == {"word": "hi", "key": "7:0", "run": 7, "left": True}


def test_the_context_is_no_argument_of_the_model():
    with pytest.raises(ToolFailed, match="context: Extra inputs"):
        call_path(f"{HERE}:tells_context", {"word": "hi", "context": {}})


def test_an_asynchronous_function_is_run():
    assert call_path(f"{HERE}:asynchronous", {"a": 4}) == 8


def test_an_asynchronous_function_past_its_time_is_cancelled():
    with pytest.raises(ToolTimedOut):
        call_path(f"{HERE}:asynchronous_wait", {"seconds": 60}, timeout=0.2)

    wait_until(lambda: abandoned_calls.count_abandoned_calls() == 0)


def test_a_function_that_is_not_registered_is_never_imported():
    with pytest.raises(ToolFailed, match="'os:getcwd' is not registered"):
        call_path("os:getcwd")


def test_an_unknown_kind_is_a_sentence():
    with pytest.raises(ToolFailed, match="unknown kind 'telepathy'"):
        call_tool(ToolSpec(name="x", kind="telepathy"), "", deadline=Deadline())
