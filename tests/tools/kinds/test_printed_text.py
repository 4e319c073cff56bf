"""What Python tools print, in both interpreters."""

import pytest

from tests.tools.kinds.sandboxes import needs_bubblewrap
from tools.errors import ToolFailed
from tools.kinds.registry import call_tool
from tools.net.deadline import Deadline
from tools.spec import ToolSpec


@pytest.fixture(params=["monty", pytest.param("cpython", marks=needs_bubblewrap)])
def run(request, settings):
    """Run code, and pass on what it prints."""
    settings.CPYTHON = True

    def run_code(code, *, on_print):
        config = {"code": code, "interpreter": request.param}
        spec = ToolSpec(name="t", kind="python", config=config, timeout=20.0)
        return call_tool(spec, {}, deadline=Deadline(seconds=120), on_print=on_print)

    return run_code


def test_what_is_printed_is_passed_on_while_the_code_runs(run):
    pieces = []

    value = run("print('é', 1)\nprint('two')\n3", on_print=pieces.append)

    assert ("".join(pieces), value) == ("é 1\ntwo\n", 3)


def test_what_was_printed_before_an_error_is_passed_on(run):
    pieces = []

    with pytest.raises(ToolFailed, match="ZeroDivisionError"):
        run("print('before')\n1 / 0", on_print=pieces.append)

    assert "".join(pieces) == "before\n"


def test_no_more_is_passed_on_than_code_may_print(run):
    pieces = []

    with pytest.raises(ToolFailed, match="printed more than 64 KB"):
        run("while True:\n    print('x' * 1000)", on_print=pieces.append)

    assert 0 < len("".join(pieces)) <= 64 * 1024
