"""Python programs that start fast: forks of a process that has imported large modules.

`fork_server.py SOCKET MODULE …` imports the modules and serves. The command that starts
a program is `fork_server.py start SOCKET PROGRAM …`; it ends as the program ends, and
the program ends with it. A program is a file or the name of a module. Standard library
only, since the environments of other programs run it.
"""

import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

INTERRUPT = b"i"


class ForkServer:
    """A server that runs; it starts with its first command."""

    def __init__(self, python: str, modules: tuple[str, ...], folder: Path) -> None:
        self._words = [python, "-P", __file__, str(folder / "socket"), *modules]
        self._process: subprocess.Popen[bytes] | None = None

    def command(self, *program: str) -> list[str]:
        """Return what starts the program with its arguments."""
        if self._process is None:
            self._process = subprocess.Popen(
                self._words, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
            assert self._process.stdout is not None
            assert self._process.stdout.readline(), "The fork server does not start."
        return [sys.executable, "-I", "-S", __file__, "start", self._words[3], *program]

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()


@contextmanager
def fork_server(*modules: str, python: str = sys.executable) -> Iterator[ForkServer]:
    """Give a server whose programs find these modules imported."""
    with tempfile.TemporaryDirectory() as folder:
        server = ForkServer(python, modules, Path(folder))
        try:
            yield server
        finally:
            server.close()


def serve(path: str, modules: list[str]) -> None:
    """Import the modules, and fork for each connection until the input ends."""
    for module in modules:
        importlib.import_module(module)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forks
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while listening in select.select([listening, sys.stdin], [], [])[0]:
            accepted, _ = listening.accept()
            with accepted:
                if os.fork() == 0:
                    listening.close()
                    supervise(accepted)


def supervise(client: socket.socket) -> NoReturn:
    """Run one program for its client; each of the two ends with the other."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    asked, pipes, _, _ = socket.recv_fds(client, 1 << 20, 3)
    ended, alive = os.pipe()
    program = os.fork()
    if program == 0:
        os.close(ended)
        client.close()
        run(json.loads(asked), pipes)
    for pipe in (alive, *pipes):
        os.close(pipe)
    os.closerange(0, 3)
    heard: list[socket.socket | int] = [client, ended]
    while client in select.select(heard, [], [])[0]:
        if client.recv(1) != INTERRUPT:
            os.kill(program, signal.SIGKILL)
            os._exit(0)
        os.kill(program, signal.SIGINT)
    _, status = os.waitpid(program, 0)
    client.sendall(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def run(asked: dict[str, Any], pipes: list[int]) -> NoReturn:
    """Be the program; raise what it raises."""
    for number, pipe in enumerate(pipes):
        os.dup2(pipe, number)
        os.close(pipe)
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    sys.argv = asked["words"]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    code: object = 1
    try:
        if os.path.exists(sys.argv[0]):
            sys.path.insert(0, os.path.dirname(sys.argv[0]))
            runpy.run_path(sys.argv[0], run_name="__main__")
        else:
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code or 0
    except BaseException:  # noqa: BLE001  # as the interpreter does at the end
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


def start(path: str, words: list[str]) -> NoReturn:
    """Have the server run a program with our pipes, and end as it does."""
    asked = {"words": words, "folder": os.getcwd(), "environment": dict(os.environ)}
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(path)
        signal.signal(signal.SIGINT, lambda *_: server.sendall(INTERRUPT))
        socket.send_fds(server, [json.dumps(asked).encode()], [0, 1, 2])
        os.closerange(0, 3)  # so that its output ends when the program does
        code = int(server.recv(99) or b"1")
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    if sys.argv[1] == "start":
        start(sys.argv[2], sys.argv[3:])
    serve(sys.argv[1], sys.argv[2:])
