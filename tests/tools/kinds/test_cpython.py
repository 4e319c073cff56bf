"""Python tools in CPython: the same walls as in Monty, held by the kernel."""

import os
import shutil
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.fakes.listener import listener
from tests.tools.kinds.sandboxes import (
    OWN_MEMORY,
    below,
    looked_at,
    needs_bubblewrap,
    program_of,
)
from tests.tools.kinds.test_python import BOMBS, ESCAPES, failed_frame, is_alive
from tools.errors import CallCanceled, ToolFailed, ToolTimedOut
from tools.kinds.config_checks import find_config_flaws
from tools.kinds.registry import call_tool
from tools.net.deadline import Deadline
from tools.sandbox import cpython, cpython_probe
from tools.spec import ToolSpec

pytestmark = needs_bubblewrap

SECRET = "a secret that lies about"
STEPS = 1000
CPYTHON = {"interpreter": "cpython", "timeout": 20.0}


@pytest.fixture(autouse=True)
def switched_on(settings):
    settings.CPYTHON = True


def run(code, arguments=None, *, timeout=20.0, deadline=None, **config):
    config = {"code": code, "interpreter": "cpython", **config}
    spec = ToolSpec(name="t", kind="python", config=config, timeout=timeout)
    given = {} if arguments is None else arguments
    deadline = deadline or Deadline(seconds=120)
    return call_tool(spec, given, deadline=deadline)


def message(code, **more):
    """Return the value as text, or the sentence."""
    try:
        return repr(run(code, **more))
    except ToolFailed as failed:
        return str(failed)


@pytest.mark.parametrize(
    ("code", "arguments", "value"),
    [
        ("a + b", {"a": 1, "b": 2}, 3),
        ("input.upper()", "hi", "HI"),
        ("x = 1", {}, None),
        ("print('not the result')\n1", {}, 1),
        ("class A:\n    x = 5\nA().x", {}, 5),
        ("import statistics\nstatistics.stdev([1, 2, 3])", {}, 1.0),
        ("from decimal import Decimal\nDecimal('1.10')", {}, "1.10"),
        ("import datetime\ndatetime.date(2026, 1, 2)", {}, "2026-01-02"),
        ("({1}, (2, 3), b'x', range(2))", {}, [[1], [2, 3], "x", [0, 1]]),
        (
            "import asyncio\nasync def f():\n    await asyncio.sleep(0)\n"
            "    return 5\nasyncio.run(f())",
            {},
            5,
        ),
        (
            "import sqlite3\ndb = sqlite3.connect(':memory:')\n"
            "db.execute('SELECT 1 + 1').fetchall()",
            {},
            [[2]],
        ),
        ("'\\ud800'", {}, "\ud800"),
    ],
)
def test_the_last_expression_is_the_result(code, arguments, value):
    assert run(code, arguments) == value


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("\n1 / 0", "Line 2: ZeroDivisionError: division by zero"),
        ("raise ValueError('no such order')", "ValueError: no such order"),
        ("a +", "Line 1: invalid syntax."),
        ("class A: pass\nA()", "value of type 'A', which has no JSON form"),
        ("class E(Exception):\n  def __str__(self): 1/0\nraise E", "Line 3: E"),
        ("raise BaseException", "Line 1: BaseException"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("import os\nos._exit(3)", "ended itself with the code 3 before"),
        ("import ctypes\nctypes.string_at(0)", "ended by the signal SIGSEGV"),
        ("import os\nos.kill(os.getpid(), 9)", "ended by the signal SIGKILL"),
        ("x = []\nx.append(x)\nx", "Circular reference"),
        ("import sys\nsys.set_int_max_str_digits(0)\n10 ** 5000", "cannot be read"),
        ("'x' * (5 << 20)", "returned more than 4 MB"),
    ],
)
def test_what_goes_wrong_is_a_sentence(code, sentence):
    assert sentence in message(code, memory_mb=256)


def test_an_argument_that_is_no_variable_is_a_sentence():
    with pytest.raises(ToolFailed, match="'a-b' is not a name"):
        run("1", {"a-b": 1})


SYSCALL = "import ctypes\nctypes.CDLL(None).syscall({})"
MORE_ESCAPES = [
    "open('{file}').read()",
    "open('/python/../{file}').read()",
    "import os\nos.open('{file}', 0)",
    "import os\nos.listdir('{folder}')",
    "import os\n[os.listdir(p) for p in ('/home', '/root', '/var', '/srv')]",
    "import pathlib\n[found.read_text() for place in pathlib.Path('/').iterdir()"
    " if place.name not in {{'usr', 'lib', 'lib64', 'python'}}"
    " for found in place.glob('**/file') if found.is_file()]",
    "import os\nos.symlink('{file}', '/dev/x')",
    "import os\nos.mkdir('/dev/shm')",
    "import os\nos.mknod('/x', 0o666)",
    "import os\nos.memfd_create('x')",
    "import tempfile\ntempfile.NamedTemporaryFile()",
    "import os\nos.chroot('/')",
    "import os\nos.setuid(0)",
    "import os\nos.kill({pid}, 9)",
    "import os\nos.kill(-1, 15)",
    "import os\nos.killpg({pid}, 9)",
    "import os\nos.posix_spawn('/bin/sh', ['sh'], {{}})",
    "import os\nos.execve('/python/bin/python3.11', ['p', '-c', '1'], {{}})",
    "import pty\npty.spawn('/bin/sh')",
    "import socket\nsocket.create_connection(('127.0.0.1', {port}), 2)",
    "import socket\nsocket.create_connection(('localhost', {port}), 2)",
    "import socket\nsocket.socket(socket.AF_INET6)",
    "import socket\nsocket.socket(socket.AF_UNIX).connect('\\0x')",
    "import socket\nsocket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
    "import socket\nsocket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    "import socket\n[socket.socket(fileno=n) for n in range(3, 20)]",
    "import socket\na, b = socket.socketpair()\na.connect('\\0x')",
    "import asyncio\nasyncio.run(asyncio.open_connection('127.0.0.1', {port}))",
    "import urllib.request\nurllib.request.urlopen('http://127.0.0.1:{port}').read()",
    "import ftplib\nftplib.FTP('127.0.0.1')",
    "import os\n[os.read(n, 99) for n in range(3, 20)]",
    "import os\n[os.readlink(f'/proc/self/fd/{{n}}') for n in range(9)]",
    "open('/proc/1/environ').read()",
    "open('/proc/{pid}/environ').read()",
    "open('/proc/{pid}/mem', 'r+b')",
    "open('/sys/kernel/uevent_helper', 'w')",
    "open('/dev/mem', 'rb')",
    "open('/dev/kmsg').read(9)",
    SYSCALL.format("101, 16, {pid}, 0, 0"),  # ptrace
    SYSCALL.format("310, {pid}, 0, 0, 0, 0, 0"),  # process_vm_readv
    SYSCALL.format("272, 0x10000000"),  # unshare a user namespace
    SYSCALL.format("165, b'x', b'/', b'tmpfs', 0, 0"),  # mount
    SYSCALL.format("56, 0x10000011, 0, 0, 0, 0"),  # clone
    SYSCALL.format("435, 0, 0"),  # clone3
    SYSCALL.format("321, 0, 0, 0"),  # bpf
    SYSCALL.format("425, 8, 0"),  # io_uring
    SYSCALL.format("0x40000029, 2, 1, 0"),  # socket, as x32 numbers it
    SYSCALL.format("250, 0, -3, 0"),  # keyctl
    SYSCALL.format("319, b'x', 0"),  # memfd_create
    "import resource as r\nr.setrlimit(r.RLIMIT_AS, (-1, -1))",
    "import resource as r\nr.setrlimit(r.RLIMIT_CPU, (-1, -1))",
    "import os\nos.nice(-5)",
    "import os\n(os.getuid(), sorted(os.environ))",
]


@pytest.fixture(scope="module")
def canaries(tmp_path_factory):
    """Things that are there to be got at, and whether anybody did."""
    folder = tmp_path_factory.mktemp("canaries")
    (folder / "file").write_text(SECRET)
    with (
        listener() as network,
        subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(3600)"]
        ) as one,
    ):
        yield {
            "file": str(folder / "file"),
            "folder": str(folder),
            "port": network.port,
            "pid": one.pid,
            "network": network,
            "process": one,
        }
        one.kill()


@pytest.mark.parametrize("code", [*ESCAPES, *MORE_ESCAPES])
def test_nothing_outside_is_read_or_reached(code, canaries):
    if code in MORE_ESCAPES:
        code = code.format(**canaries)

    said = message(code, timeout=5.0)

    assert "root:" not in said
    assert SECRET not in said
    assert "SECRET" not in said
    assert not os.path.exists("/tmp/agentsite-escape")
    assert canaries["network"].knocks == 0
    assert canaries["process"].poll() is None
    assert Path(canaries["file"]).read_text() == SECRET


def test_neighbours_work_after_all_of_that():
    assert run("1 + 1") == 2


@pytest.mark.parametrize(
    "call",
    [
        *("101, 16, 1, 0, 0", "272, 0x10000000", "165, b'x', b'/', b'tmpfs', 0, 0"),
        *("57", "58", "56, 17, 0, 0, 0, 0", "41, 2, 1, 0", "321, 0, 0, 0"),
        *("425, 8, 0", "0x40000029, 2, 1, 0", "250, 0, -3, 0", "319, b'x', 0"),
    ],
)
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers are its own")
def test_the_kernel_refuses_the_call_itself(call):
    code = (
        "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        f"(libc.syscall({call}), ctypes.get_errno())"
    )

    assert run(code) == [-1, 1]


def test_code_gets_all_the_memory_its_tool_says():
    code = "import time\nx = []\ntry:\n    while True:\n        x.append(b'x' * 9999)\n"
    code += "except MemoryError:\n    time.sleep(0.3)\n"

    with looked_at(sandboxes) as taken:
        run(code, memory_mb=64)

    assert 0.8 * (64 << 20) <= taken.memory <= 1.2 * (64 << 20) + OWN_MEMORY


def test_memory_ends_where_the_tool_says():
    code = "x = []\ntry:\n    while True:\n        x.append(bytearray(1 << 20))\n"
    code += "except MemoryError:\n    n = len(x)\n    x.clear()\nn"

    for megabytes in (32, 128):
        assert 0.8 * megabytes <= run(code, memory_mb=megabytes) <= 1.2 * megabytes


@pytest.mark.slow
def test_time_ends_where_the_tool_says(record_property):
    began = time.monotonic()

    with pytest.raises(ToolTimedOut):
        run("while True:\n    pass", timeout=1.0)

    took = time.monotonic() - began
    record_property("seconds", took)
    assert took >= 1.0


MORE_BOMBS = [
    "import os\nwhile True:\n    os.fork()",
    "import threading\nwhile True:\n    threading.Thread(target=input).start()",
    "import mmap\nx = [mmap.mmap(-1, 1 << 20) for _ in range(10 ** 6)]",
    "import os\nx = [os.pipe() for _ in range(10 ** 6)]",
    "import zlib\nzlib.decompress(zlib.compress(bytes(10 ** 8)) * 10)",
    "import signal, time\nfor n in range(1, 65):\n    try:\n"
    "        signal.signal(n, signal.SIG_IGN)\n    except (OSError, ValueError):\n"
    "        pass\nwhile True:\n    pass",
    "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
    "import os\nos.kill(-1, 9)",
    "import os\nos.closerange(0, 99)\nwhile True:\n    pass",
    "import os, sys\nwhile True:\n    os.write(int(sys.argv[1]), b'x' * 65536)",
    "import os\nwhile True:\n    os.write(1, b'x' * 65536)",
    "import os\nwhile True:\n    os.write(2, b'x' * 65536)",
    "import os, sys\nos.write(int(sys.argv[1]), b'[' * 10 ** 6)\nos._exit(0)",
    "import os, sys\nos.write(int(sys.argv[1]), b'{\"error\": 5}')\nos._exit(0)",
    "import sys\nsys.setrecursionlimit(10 ** 9)\ndef f():\n    return f()\nf()",
    "import gc\ngc.disable()\nwhile True:\n    x = []\n    x.append(x)",
    "x = {}\nfor _ in range(10 ** 6):\n    x = {'a': x}\nx",
    "f'{1:>99999999999}'",
    "compile('(' * 10 ** 6, 'x', 'eval')",
    "import re\nre.match('(a+)+$', 'a' * 60 + 'b')",
]


def sandboxes():
    """Return the processes in which code of this process runs."""
    home = f"{cpython.PYTHON_HOME}/"
    return [pid for pid in below(os.getpid()) if program_of(pid).startswith(home)]


@pytest.mark.slow
@pytest.mark.parametrize("code", [*BOMBS, *MORE_BOMBS])
def test_limits_hold_within_a_fifth_and_the_worker_lives(code, record_property):
    with looked_at(sandboxes) as taken, pytest.raises(ToolFailed):
        run(code, timeout=1.0, memory_mb=64)

    taken.assert_memory_within(64 << 20)
    record_property("seconds", max(taken.seconds, taken.cpu))


@pytest.mark.slow
def test_neighbours_work_while_bombs_go_off():
    bombs = ["while True:\n    pass", "x = [0]\nwhile True:\n    x = x + x"] * 3
    with ThreadPoolExecutor(8) as pool:
        booms = [pool.submit(message, code, timeout=1.5) for code in bombs]
        values = [pool.submit(run, "1 + 1", timeout=60.0) for _ in range(4)]

        assert [value.result() for value in values] == [2, 2, 2, 2]
        assert all(boom.result() != "2" for boom in booms)


def test_stop_ends_the_sandbox():
    flag = threading.Event()
    threading.Timer(0.3, flag.set).start()
    began = time.monotonic()

    with pytest.raises(CallCanceled):
        run("while True:\n    pass", timeout=50, deadline=Deadline(flag=flag))

    assert time.monotonic() - began < 25


def test_a_killed_worker_leaves_no_sandbox_behind():
    program = (
        "import os, time\n"
        "from tools.sandbox.cpython import build_sandbox_program\n"
        "reader, writer = os.pipe()\n"
        "one = build_sandbox_program().start(writer)\n"
        'one.stdin.write(b\'{"seconds": 60, "memory": 99999999, "inputs": {},\'\n'
        '                b\'"code": "while 1: pass"}\')\n'
        "one.stdin.close()\n"
        "print(one.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    ) as worker:
        pid = int(worker.stdout.readline())
        pids = wait_for(lambda: len(found := family_of(pid)) > 2 and found)
        worker.kill()

    assert wait_for(lambda: not any(map(is_alive, pids)))


def wait_for(condition):
    for _ in range(STEPS):
        if value := condition():
            return value
        time.sleep(0.02)
    return None


def family_of(pid):
    """Return a process and all below it."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except FileNotFoundError:
        return []
    return [pid, *(one for child in children for one in family_of(int(child)))]


def test_the_probe_finds_that_the_sandbox_holds():
    assert cpython_probe.probe_sandbox() == ""


@pytest.fixture
def other_bwrap(tmp_path, monkeypatch):
    """Put another program in the place of bubblewrap."""
    monkeypatch.setattr(cpython_probe, "_probe_results", {})

    def put(script):
        program = tmp_path / "bwrap"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", str(tmp_path))

    return put


def test_the_probe_finds_a_sandbox_that_isolates_nothing(other_bwrap):
    python = sys.executable
    inside = cpython.cpython_inside.__file__
    other_bwrap(
        "while [ $1 != -I ]; do shift; done\n"
        f'for fd in "$@"; do :; done\nexec {python} -I -S -B -X utf8 {inside} $fd'
    )

    flaw = cpython_probe.probe_sandbox()

    assert "its sandbox does not hold: it reads files of this machine" in flaw
    assert "sees /proc" in flaw


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo No permissions to create a namespace >&2; exit 1", "with the code 1"),
        ("exit 0", "ended itself with the code 0"),
    ],
)
def test_where_bubblewrap_does_not_work_the_choice_is_refused(
    other_bwrap, script, why, settings
):
    other_bwrap(script)
    config = {"code": "1", "interpreter": "cpython"}

    (flaw,) = find_config_flaws("python", config)

    assert "CPython cannot be used here, its sandbox does not start" in flaw
    assert why in flaw
    assert flaw in message("1")


def test_without_bubblewrap_the_choice_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(cpython_probe, "_probe_results", {})
    monkeypatch.setenv("PATH", str(tmp_path))

    assert shutil.which("bwrap") is None
    assert "bubblewrap is not installed" in message("1")


def test_where_nobody_switched_it_on_the_choice_is_refused(settings):
    settings.CPYTHON = False

    assert "An operator can enable it with AGENTSITE_CPYTHON=1." in message("1")
    assert run("1 + 1", interpreter="monty") == 2


def test_an_error_comes_with_the_variables_of_its_frame():
    code = (
        "import json\n"
        "def share(total, parts):\n"
        "    left = total - 1\n"
        "    return left / parts\n"
        "days = 3\n"
        "share(days, 0)"
    )

    found = failed_frame(code, {"start": "2026-11-20"}, **CPYTHON)

    assert found == [(4, {"total": "3", "parts": "0", "left": "2"})]


def test_variables_outside_functions_are_data_only():
    code = "import json\nclass A: pass\ndef f(): pass\n[1 / n for n in rows]"

    found = failed_frame(code, {"rows": [1, 0]}, **CPYTHON)

    assert found == [(4, {"rows": "[1, 0]", "n": "0"})]


def test_values_of_an_error_are_short_and_run_no_code_of_the_tool():
    code = (
        "class A:\n"
        "    def __init__(self): self.n = 1\n"
        "    def __repr__(self): raise SystemExit\n"
        "a, text, rows = A(), 'x' * 10**6, list(range(10**5))\n"
        "a.b"
    )

    [(line, found)] = failed_frame(code, **CPYTHON)

    assert (line, found["a"]) == (5, "A(n=1)")
    assert all(len(value) <= 400 for value in found.values())


def test_a_run_does_not_ask_for_variables(monkeypatch):
    asked = []
    program = cpython.run_program

    def listening(one, given, **more):
        asked.append(given)
        return program(one, given, **more)

    monkeypatch.setattr(cpython, "run_program", listening)

    assert message("x = 1\nx / 0") == "Line 2: ZeroDivisionError: division by zero"
    assert b'"explains": false' in asked[0]


def test_an_error_of_memory_keeps_its_words():
    found = message("rows = [0] * 10**10")

    assert found == "MemoryError: the code needs more memory than it may have."
