"""Running Python in the Monty interpreter: processes of its own, and limits.

The code sees no files, no network, no environment and none of our objects; values go in
and come out as copies. A worker process that dies is replaced by the next call.
"""

import ast
import atexit
import os
import signal
import threading
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from pydantic_monty import (
    Monty,
    MontyCrashedError,
    MontyError,
    MontyRuntimeError,
    MontySession,
    MontySyntaxError,
    ResourceLimits,
)

from tools.errors import Interrupted, ToolFailed
from tools.net.deadline import Deadline
from tools.sandbox.abandoned_calls import run_or_abandon
from tools.sandbox.failed_frame import (
    MAX_VALUE_TEXT,
    MAX_VARIABLES,
    FailedFrame,
    FrameReader,
    VariableText,
)
from tools.sandbox.last_value import (
    MAX_RESULT,
    TOO_LARGE_MARK,
    guard_last_value,
    parse_tool_code,
)

MAX_PROCESSES = 8
CHECKOUT_SECONDS = 30.0
MAX_SECONDS = 60.0
"""What one call may take, whatever its tool says."""

MAX_PRINTED = 64 * 1024
"""Characters a call may print."""

MAX_DEPTH = 300
MAX_SUSPENSIONS = 100

_lock = threading.Lock()
_pools: list[Monty] = []


class CodeFailed(ToolFailed):
    """The code raised something, or met a limit."""

    def __init__(self, error: MontyError, line: int | None = None) -> None:
        message = str(error).strip() or type(error).__name__
        super().__init__(f"Line {line}: {message}" if line else message)


class SandboxCrashed(ToolFailed):
    """The process of the sandbox ended in the middle of the call."""

    def __init__(self) -> None:
        super().__init__(
            "The sandbox ended before the code did; it met a limit, or crashed."
        )


class CodePrintedTooMuch(ToolFailed):
    """The code prints without end."""

    def __init__(self) -> None:
        super().__init__(f"The code printed more than {MAX_PRINTED >> 10} KB.")


def run_monty(
    code: str,
    inputs: dict[str, Any],
    *,
    deadline: Deadline,
    memory: int,
    on_print: Callable[[str], None] | None = None,
    on_failure: FrameReader | None = None,
) -> Any:
    """Return the value of the last expression of `code`.

    `inputs` are its variables, `memory` is in bytes; `on_print` receives what the code
    prints, in pieces and in another thread, `on_failure` the variables outside its
    functions where it raised. Raise `ToolFailed` with a sentence, `Interrupted` when
    `deadline` says so; then the process is killed.
    """
    left = deadline.remaining()
    seconds = MAX_SECONDS if left is None else min(left, MAX_SECONDS)
    run = _MontyCall(
        code,
        inputs,
        _build_limits(seconds, memory),
        on_print,
        explains=on_failure is not None,
    )
    try:
        value = run_or_abandon(run, deadline)
    except Interrupted:
        run.end()
        raise
    except MontySyntaxError as error:
        raise CodeFailed(error) from None
    except MontyCrashedError:
        raise (
            CodePrintedTooMuch if run.printed > MAX_PRINTED else SandboxCrashed
        ) from None
    except MontyRuntimeError as error:
        deadline.check()  # its own time limit is the deadline of the call
        if run.printed > MAX_PRINTED:
            raise CodePrintedTooMuch from None
        line = find_raising_line(error, code)
        if on_failure is not None and line and run.variables:
            on_failure(FailedFrame(find_outer_line(error) or line, run.variables))
        raise CodeFailed(error, line) from None
    except MontyError as error:
        raise CodeFailed(error) from None
    except TimeoutError:
        raise SandboxBusy from None
    if value == TOO_LARGE_MARK:
        raise ResultTooLarge
    return value


def find_raising_line(error: MontyRuntimeError, code: str) -> int | None:
    """Return the innermost line of `code`; None if the error was raised elsewhere."""
    frames = error.traceback()
    line = frames[-1].line if frames else 0
    return line if 0 < line <= len(code.splitlines()) else None


def find_outer_line(error: MontyRuntimeError) -> int:
    """Return the line outside all functions that led to the error; 0 for none."""
    frames = error.traceback()
    return frames[0].line if frames else 0


def list_variable_names(code: str, inputs: dict[str, Any]) -> list[str]:
    """Return the names of inputs and of whatever the code assigns, at most sixty."""
    assigned = [
        node.id
        for node in ast.walk(parse_tool_code(code))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]
    names = dict.fromkeys([*inputs, *assigned])
    return [name for name in names if not name.startswith("__")][: 2 * MAX_VARIABLES]


class ResultTooLarge(ToolFailed):
    """The value of the last expression is too much."""

    def __init__(self) -> None:
        super().__init__(
            f"The result is larger than {MAX_RESULT >> 20} MB written out. Return less."
        )


class SandboxBusy(ToolFailed):
    """All processes of the sandbox work on other calls."""

    def __init__(self) -> None:
        super().__init__(
            f"No sandbox became free within {CHECKOUT_SECONDS:g} s: {MAX_PROCESSES} "
            "other calls run. Try again later."
        )


class _MontyCall:
    """One call in one worker process."""

    def __init__(
        self,
        code: str,
        inputs: dict[str, Any],
        limits: ResourceLimits,
        on_print: Callable[[str], None] | None,
        *,
        explains: bool = False,
    ) -> None:
        self.names = list_variable_names(code, inputs) if explains else []
        self.variables: tuple[VariableText, ...] = ()
        """Read after an error, outside all functions."""
        self.code, self.inputs, self.limits = guard_last_value(code), inputs, limits
        self.printed, self.on_print = 0, on_print
        self.lock = threading.Lock()
        """Held while the process is ended, so that it is not another call's by then."""
        self.pid: int | None = None

    def __call__(self) -> Any:
        with _get_pool().checkout(limits=self.limits) as session:
            self.pid = session.worker_pid
            try:
                return session.feed_run(
                    self.code, inputs=self.inputs, print_callback=self.pass_on
                )
            except MontyRuntimeError:
                if self.names and self.printed <= MAX_PRINTED:
                    self.variables = tuple(
                        islice(self.iter_variables(session), MAX_VARIABLES)
                    )
                raise
            finally:
                with self.lock:
                    self.pid = None

    def iter_variables(self, session: MontySession) -> Iterator[VariableText]:
        """Yield the variables that the session still has, written out within it.

        The time limit holds for each; the first that meets a limit is the last.
        """
        for name in self.names:
            # No name of the code can stand in for how an f-string writes a value.
            written = f"f'{{{name}!r}}'[:{MAX_VALUE_TEXT}]"
            try:
                text = session.feed_run(written, print_callback=discard_output)
            except MontyRuntimeError as error:
                if "NameError" in str(error):
                    continue  # a variable of a function, or not assigned yet
                return
            except MontyError:
                return
            if isinstance(text, str) and not text.startswith("<function "):
                yield VariableText(name, text)

    def pass_on(self, stream: str, text: str) -> None:
        """Pass on what is printed; end the process if it is too much."""
        if self.on_print is not None:
            self.on_print(text[: max(MAX_PRINTED - self.printed, 0)])
        self.printed += len(text)
        if self.printed > MAX_PRINTED:
            self.end()

    def end(self) -> None:
        """Kill the process, which ends the call."""
        with self.lock:
            pid, self.pid = self.pid, None
            if pid is not None:
                os.kill(pid, signal.SIGKILL)


def discard_output(stream: str, text: str) -> None:
    """Print nothing."""


def _build_limits(seconds: float, memory: int) -> ResourceLimits:
    return ResourceLimits(
        max_feed_duration_secs=seconds,
        max_memory=memory,
        max_recursion_depth=MAX_DEPTH,
        max_suspensions=MAX_SUSPENSIONS,
        max_total_sleep_secs=seconds,
    )


def _get_pool() -> Monty:
    """Return the pool of this process; its workers start with the first call."""
    with _lock:
        if not _pools:
            pool = Monty(
                min_processes=1,
                max_processes=MAX_PROCESSES,
                checkout_timeout=CHECKOUT_SECONDS,
                request_timeout=MAX_SECONDS + 5,
            )
            _pools.append(pool.__enter__())
            atexit.register(pool.__exit__, None, None, None)
        return _pools[0]
