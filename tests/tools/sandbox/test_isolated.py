"""Functions that run in a process of their own."""

import os
import threading

import pytest

from tests.tools import functions  # noqa: F401  # registers them
from tests.tools.make import call_path
from tools.errors import CallCanceled, ToolFailed, ToolTimedOut
from tools.sandbox.environment import INHERITED_VARIABLES

HERE = "tests.tools.functions"


def test_returns_the_value():
    assert call_path(f"{HERE}:isolated_add", {"a": "1", "b": 2}) == 3


def test_runs_in_another_process():
    assert call_path(f"{HERE}:isolated_pid", {}) != os.getpid()


@pytest.mark.parametrize(
    ("function", "why"),
    [
        ("isolated_raises", "ValueError: bad"),
        ("isolated_exits", "ended itself with the code 3 before"),
        ("isolated_prints", "printed more than 1 MB"),
        ("isolated_eats_memory", "MemoryError"),
        ("isolated_lets_go", "ended by the signal SIGKILL"),
    ],
)
def test_what_would_end_a_worker_is_a_sentence(function, why):
    with pytest.raises(ToolFailed, match=why):
        call_path(f"{HERE}:{function}", {})


def test_wrong_arguments_start_no_process():

    with pytest.raises(ToolFailed, match="Field required"):
        call_path(f"{HERE}:isolated_add", {"a": 1})


@pytest.mark.slow
def test_a_call_past_its_time_is_ended():
    with pytest.raises(ToolTimedOut):
        call_path(f"{HERE}:isolated_sleeps", {}, timeout=1)


def test_stop_ends_the_process():
    flag = threading.Event()
    threading.Timer(0.5, flag.set).start()

    with pytest.raises(CallCanceled):
        call_path(f"{HERE}:isolated_sleeps", {}, flag=flag)


def test_a_function_sees_only_harmless_and_declared_variables(monkeypatch):
    for name in ("SECRET_KEY", "OPENAI_API_KEY", "SHOP_API_KEY", "LANG"):
        monkeypatch.setenv(name, "C.UTF-8")

    seen = set(call_path(f"{HERE}:isolated_tells_variables", {}))

    assert {"SHOP_API_KEY", "LANG"} <= seen
    assert seen <= {"SHOP_API_KEY", "LC_CTYPE", *INHERITED_VARIABLES}
