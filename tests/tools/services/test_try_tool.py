"""Trying a tool: a call that a person stops."""

import threading
import time

import pytest

from tests.tools.http_server import Answer, serve
from tests.tools.rows import make_tool, make_user
from tools.models import ToolTrial
from tools.services.try_tool import STOPPED, try_tool

pytestmark = pytest.mark.django_db

ENDLESS = {"kind": "python", "config": {"code": "while True:\n    pass"}}


def stop_soon() -> threading.Event:
    """Return an event that is set after a moment."""
    stop = threading.Event()
    threading.Timer(0.5, stop.set).start()
    return stop


def test_stop_ends_code_that_does_not_end():
    admin = make_user("admin", is_superuser=True)
    tool = make_tool(**ENDLESS, args_schema=None, timeout=10.0, owner=admin)

    result = try_tool(tool, "", by=admin, stop=stop_soon())

    assert (result.error, result.is_stopped) == (STOPPED, True)
    assert result.seconds < 5
    assert ToolTrial.objects.get().is_stopped


def test_stop_ends_a_request_to_a_server_that_does_not_answer(
    settings, record_property
):
    settings.PRIVATE_HOSTS, settings.OWN_PORTS = "tool=127.0.0.1", []
    admin = make_user("admin", is_superuser=True)
    released = threading.Event()

    def answer_late(got) -> Answer:
        released.wait(20)
        return Answer()

    with serve(answer_late) as server:
        config = {"method": "GET", "url": server.url}
        tool = make_tool(kind="http", config=config, args_schema=None, owner=admin)
        began = time.monotonic()
        result = try_tool(tool, "", by=admin, stop=stop_soon())
        record_property("seconds", time.monotonic() - began)
        released.set()

    assert result.is_stopped
    assert len(server.got) == 1


def test_a_call_that_ended_by_itself_was_not_stopped():
    admin = make_user("admin", is_superuser=True)
    config = {"code": "1"}
    tool = make_tool(kind="python", config=config, args_schema=None, owner=admin)

    result = try_tool(tool, "", by=admin, stop=threading.Event())

    assert (result.value_text, result.is_stopped) == ("1", False)
    assert not ToolTrial.objects.get().is_stopped
