"""Running Python in CPython itself: one process a call, in a bubblewrap of its own.

It sees the standard library to read and nothing else: no network, no files, no other
process, none of our variables. The kernel holds its limits; `cpython_probe` has looked
that it does.
"""

import codecs
import json
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tools.errors import ToolFailed
from tools.net.deadline import Deadline
from tools.sandbox import cpython_child as cpython_inside
from tools.sandbox.failed_frame import FrameReader, parse_failed_frame
from tools.sandbox.last_value import MAX_RESULT
from tools.sandbox.subprocess_protocol import Program, run_program

MAX_PROCESSES = 8
MAX_SECONDS = 60.0
"""What one call may take, whatever its tool says."""

MAX_PRINTED = 64 * 1024
"""Bytes a call may print."""

CHILD_SCRIPT = "/inside.py"
PYTHON_HOME = "/python"
"""Where interpreter and standard library lie inside."""

SYSTEM_FOLDERS = ("/usr/lib", "/usr/lib64", "/lib", "/lib64")
"""Where libraries lie that the interpreter is linked to."""

PYTHON_OPTIONS = ("-I", "-S", "-B", "-u", "-X", "utf8")
"""Unbuffered, so that what was printed is there when the process is killed."""

DEVICE_FILES = ("/dev/null", "/dev/zero", "/dev/urandom")

_slots = threading.BoundedSemaphore(MAX_PROCESSES)


class BubblewrapMissing(ToolFailed):
    """The program that makes the sandbox is not there."""

    def __init__(self) -> None:
        super().__init__("bubblewrap is not installed: there is no program bwrap.")


class InvalidOutcome(ToolFailed):
    """The process wrote something that is not an outcome."""

    def __init__(self) -> None:
        super().__init__(
            "The outcome of the code cannot be read: it is nested too deeply, has a "
            "number that is too long, or was written by the code itself."
        )


def run_cpython(
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
    prints, in pieces, `on_failure` its variables where it raised. Raise `ToolFailed`
    with a sentence, `Interrupted` when `deadline` says so; then the process is killed.
    """
    left = deadline.remaining()
    seconds = MAX_SECONDS if left is None else min(left, MAX_SECONDS)
    asked = {"code": code, "inputs": inputs, "seconds": seconds, "memory": memory}
    asked["explains"] = on_failure is not None
    inner = Deadline(seconds=seconds, flag=deadline.flag)
    with take_cpython_slot(deadline):
        answer = run_program(
            build_sandbox_program(),
            json.dumps(asked).encode(),
            deadline=inner,
            on_print=on_print and decode_pieces(on_print),
        )
    return parse_cpython_outcome(answer, on_failure=on_failure)


def decode_pieces(on_text: Callable[[str], None]) -> Callable[[bytes], None]:
    """Return a function that passes on text; a piece may end within a character."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    return lambda piece: on_text(decoder.decode(piece))


@contextmanager
def take_cpython_slot(deadline: Deadline) -> Iterator[None]:
    """Wait until fewer than `MAX_PROCESSES` calls of this process run."""
    while not _slots.acquire(timeout=max(deadline.next_wait(), 0.001)):
        deadline.check()
    try:
        yield
    finally:
        _slots.release()


def build_sandbox_program() -> Program:
    """Return the sandbox with our own module in it; it ends with us."""
    return Program(
        [*build_bubblewrap_command(), *PYTHON_OPTIONS, CHILD_SCRIPT],
        cwd="/",
        env={"LANG": "C.UTF-8", "LD_LIBRARY_PATH": f"{PYTHON_HOME}/lib"},
        max_printed=MAX_PRINTED,
        max_answer=MAX_RESULT,
    )


def build_bubblewrap_command() -> list[str]:
    """Return the command line of bubblewrap and the interpreter in it."""
    program = shutil.which("bwrap")
    if program is None:
        raise BubblewrapMissing
    words = [
        *(program, "--unshare-all", "--unshare-user", "--die-with-parent"),
        *("--uid", "65534", "--gid", "65534", "--cap-drop", "ALL"),
        *("--hostname", "sandbox", "--chdir", "/"),
    ]
    for path in SYSTEM_FOLDERS:
        if os.path.islink(path):
            words += ["--symlink", os.readlink(path), path]
        elif os.path.exists(path):
            words += ["--ro-bind", path, path]
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    library = Path(sys.base_prefix) / "lib"
    words += ["--ro-bind", str(find_interpreter(name)), f"{PYTHON_HOME}/bin/{name}"]
    words += ["--ro-bind", str(library / name), f"{PYTHON_HOME}/lib/{name}"]
    for shared in library.glob("libpython3*"):
        words += ["--ro-bind", str(shared), f"{PYTHON_HOME}/lib/{shared.name}"]
    for device in DEVICE_FILES:
        words += ["--dev-bind", device, device]
    words += ["--ro-bind", str(Path(cpython_inside.__file__)), CHILD_SCRIPT]
    return [*words, "--remount-ro", "/", f"{PYTHON_HOME}/bin/{name}"]


def find_interpreter(name: str) -> Path:
    """Return the interpreter behind our virtual environment."""
    found = Path(sys.base_prefix) / "bin" / name
    return (found if found.exists() else Path(sys.executable)).resolve()


def parse_cpython_outcome(
    answer: bytes, *, on_failure: FrameReader | None = None
) -> Any:
    """Return the value of an outcome, which the code may have written itself."""
    try:
        outcome = json.loads(answer)
    except (ValueError, RecursionError):
        raise InvalidOutcome from None
    if isinstance(outcome, dict) and "value" in outcome:
        return outcome["value"]
    if isinstance(outcome, dict) and isinstance(outcome.get("error"), str):
        frame = parse_failed_frame(outcome.get("frame"))
        if on_failure is not None and frame is not None:
            on_failure(frame)
        raise ToolFailed(outcome["error"])
    raise InvalidOutcome
