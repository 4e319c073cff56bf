"""What runs inside the sandbox: takes its limits, runs the code, writes the outcome.

`python cpython_inside.py FD`, with the call as JSON on standard input. Standard library
only, and nothing of ours: the code it runs is not trusted, and may do to this process
whatever the limits and the kernel let it.
"""

import ast
import ctypes
import json
import mmap
import os
import platform
import reprlib
import resource
import struct
import sys
from types import FrameType
from typing import Any

EPERM = 1
ENOSYS = 38
PR_SET_NO_NEW_PRIVS = 38
PR_SET_SECCOMP = 22
SECCOMP_MODE_FILTER = 2
MAX_OPEN_FILES = 64
MAX_ADDRESS_SPACE = 1 << 40

# Calls that code of a tool never needs: programs, processes and threads, sockets to
# elsewhere, mounts, other processes' memory, and corners of the kernel.
DENIED_SYSCALLS = {
    "x86_64": (
        0xC000003E,
        *((57, 58, 56, 59, 322, 41), (101, 310, 311, 312, 434, 438)),
        (165, 166, 155, 161, 272, 308, 428, 429, 430, 432, 442),
        (248, 249, 250, 298, 304, 303, 321, 323, 425, 426, 427, 134, 135, 154),
        (172, 173, 175, 176, 313, 246, 320, 167, 168, 169, 163, 164, 227, 103),
        (29, 30, 31, 64, 65, 66, 68, 69, 70, 71, 240, 319, 447),
    ),
    "aarch64": (
        0xC00000B7,
        *((220, 221, 281, 198), (117, 270, 271, 272, 434, 438)),
        (40, 39, 41, 51, 97, 268, 428, 429, 430, 432, 442),
        (217, 218, 219, 241, 264, 265, 280, 282, 425, 426, 427, 92),
        (104, 105, 106, 273, 294, 224, 225, 142, 89, 170, 112, 116),
        (186, 187, 188, 189, 190, 191, 193, 194, 195, 196, 180, 279, 447),
    ),
}
"""By machine: its number for the kernel, then the numbers of the calls."""

COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
"""Frames within the frame that a reader of the code sees."""

CODE_TYPES = (type(sys), type(len), type(lambda: None))
MAX_SHOWN, MAX_TEXT = 30, 400
"""Variables of an error, and characters of one value."""

CLONE3 = 435
"""Said not to be there, so that the C library takes its older way, which is refused."""


def main() -> None:
    out = int(sys.argv[1])
    asked = json.load(sys.stdin)
    apply_process_limits(seconds=asked["seconds"], memory=asked["memory"])
    install_syscall_filter()
    explains = asked.get("explains", False)
    answer = build_code_outcome(asked["code"], asked["inputs"], explains=explains)
    while answer:
        answer = answer[os.write(out, answer) :]
    os._exit(0)


def apply_process_limits(*, seconds: float, memory: int) -> None:
    """Take the limits of the call; `memory` is what the code may add, in bytes."""
    cpu = int(seconds) + 1
    most = measure_address_space() + memory
    for kind, limit in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_NOFILE, MAX_OPEN_FILES),
        (resource.RLIMIT_CPU, cpu),
        (resource.RLIMIT_AS, most),
    ):
        resource.setrlimit(kind, (limit, limit))


def measure_address_space() -> int:
    """Return the bytes this process has mapped, found by asking for one page more.

    The sandbox has no /proc to read it from.
    """
    low, high = 0, MAX_ADDRESS_SPACE
    while high - low > 1 << 16:
        middle = (low + high) // 2
        resource.setrlimit(resource.RLIMIT_AS, (middle, resource.RLIM_INFINITY))
        try:
            mmap.mmap(-1, mmap.PAGESIZE).close()
        except OSError:
            low = middle
        else:
            high = middle
    return high


def install_syscall_filter() -> None:
    """Install a filter for system calls, for good."""
    number, *groups = DENIED_SYSCALLS[platform.machine()]
    refused = [call for group in groups for call in group]
    steps = [
        (0x20, 0, 0, 4),  # load the machine
        (0x15, 1, 0, number),
        (0x06, 0, 0, 0x80000000),  # another machine's calls: end the process
        (0x20, 0, 0, 0),  # load the call
        (0x35, 0, 1, 0x40000000),  # calls of x32 have numbers of their own
        (0x06, 0, 0, 0x00050000 | EPERM),
        (0x15, 0, 1, CLONE3),
        (0x06, 0, 0, 0x00050000 | ENOSYS),
    ]
    for call in refused:
        steps += [(0x15, 0, 1, call), (0x06, 0, 0, 0x00050000 | EPERM)]
    steps.append((0x06, 0, 0, 0x7FFF0000))  # all others are allowed
    program = b"".join(struct.pack("HBBI", *step) for step in steps)
    code = ctypes.create_string_buffer(program)
    head = ctypes.create_string_buffer(
        struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(code))
    )
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        os._exit(70)
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, head, 0, 0):
        os._exit(71)


def build_code_outcome(
    code: str, inputs: dict[str, Any], *, explains: bool = False
) -> bytes:
    """Return `{"value": …}` or `{"error": sentence}` as JSON.

    If it `explains`, an error comes with the variables where it was raised.
    """
    frame = None
    try:
        value = execute_code(code, inputs)
        return json.dumps({"value": value}, default=to_json_result).encode()
    except BaseException as error:  # noqa: BLE001  # the code may raise anything
        message = describe_code_error(error)
        frame = describe_failed_frame(error) if explains else None
    failed = {"error": message[:4000], **({"frame": frame} if frame else {})}
    return json.dumps(failed).encode()


def execute_code(code: str, inputs: dict[str, Any]) -> Any:
    """Run all but the last expression, and return its value."""
    tree = ast.parse(code, "tool")
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr):
        tree.body.pop()
    names: dict[str, Any] = {"__name__": "__main__", **inputs}
    exec(compile(tree, "tool", "exec"), names)  # noqa: S102  # that is what it is for
    if not isinstance(last, ast.Expr):
        return None
    return eval(compile(ast.Expression(last.value), "tool", "eval"), names)  # noqa: S307


def describe_code_error(error: BaseException) -> str:
    """Return what was raised, and in which line of the code."""
    if type(error) is MemoryError:
        return "MemoryError: the code needs more memory than it may have."
    if type(error) is RecursionError:
        return f"RecursionError: {error}."
    _frame, raised_at = find_code_frame(error)
    line = raised_at or getattr(error, "lineno", None)
    try:
        message = str(getattr(error, "msg", None) or error)
    except Exception:  # noqa: BLE001  # the code's own class may raise again
        message = ""
    where = f"Line {line}: " if isinstance(line, int) else ""
    return where + (
        f"{type(error).__name__}: {message}" if message else type(error).__name__
    )


def find_code_frame(error: BaseException) -> tuple[FrameType | None, int]:
    """Return the innermost frame of the code, and its line; None and 0 for none."""
    found, line, trace = None, 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "tool":
            found, line = trace.tb_frame, trace.tb_lineno
        trace = trace.tb_next
    return found, line


def describe_failed_frame(error: BaseException) -> dict[str, Any] | None:
    """Return line and variables of the innermost frame of the code; None for none."""
    found, line = find_code_frame(error)
    try:
        names: dict[str, Any] = {}
        while found is not None and found.f_code.co_name in COMPREHENSIONS:
            names = {**found.f_locals, **names}
            found = found.f_back
        if found is None:
            return None
        names = {**found.f_locals, **names}
        shown = [one for one in names.items() if is_shown_variable(*one)]
        texts = [(name, ValueText().repr(value)) for name, value in shown[:MAX_SHOWN]]
    except BaseException:  # noqa: BLE001  # no memory is left, or a value is strange
        return None
    return {"line": line, "variables": texts}


def is_shown_variable(name: str, value: Any) -> bool:
    """Whether a variable is data, not a module, function or class."""
    is_code = isinstance(value, type) or type(value) in CODE_TYPES
    return name.isidentifier() and not name.startswith("__") and not is_code


class ValueText(reprlib.Repr):
    """Writes values briefly, and calls no method that the code defines itself."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 4
        self.maxstring = self.maxother = self.maxlong = MAX_TEXT
        self.maxdict = self.maxlist = self.maxtuple = self.maxset = 20

    def repr_instance(self, x: Any, level: int) -> str:
        """Write an object of a class of the code with its attributes."""
        if type(x).__module__ != "__main__":
            return super().repr_instance(x, level)
        try:
            held = object.__getattribute__(x, "__dict__")
        except AttributeError:
            held = {}
        parts = [
            f"{name}={self.repr1(one, level - 1)}" for name, one in [*held.items()][:20]
        ]
        return f"{type(x).__name__}({', '.join(parts if level > 0 else ['...'])})"


def to_json_result(value: Any) -> Any:
    """Return a value without a JSON form as one that has it."""
    if isinstance(value, set | frozenset | range):
        return list(value)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if type(value).__module__ in ("decimal", "fractions", "uuid", "pathlib"):
        return str(value)
    raise TypeError(
        f"The tool returned a value of type {type(value).__name__!r}, which has no "
        "JSON form"
    )


if __name__ == "__main__":
    main()
