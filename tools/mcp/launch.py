"""Starts a listed command so that all of it ends with us: `launch.py PARENT PROGRAM …`.

Run as a file by a bare interpreter; standard library only. It stays as the leader of
the group, since programs such as npx start others that would outlive a dead worker.
"""

import ctypes
import os
import resource
import signal
import sys
from types import FrameType

PR_SET_PDEATHSIG = 1
NOT_FOUND = 127
ORPHANED = signal.SIGUSR1
"""What the kernel sends to the leader when the worker is gone."""


def main() -> None:
    """Start the command, wait for it, and end as it ended."""
    parent, words = int(sys.argv[1]), sys.argv[2:]
    signal.signal(ORPHANED, end_group)
    end_with_parent(parent, ORPHANED)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    leader = os.getpid()
    child = os.fork()
    if child == 0:
        signal.signal(ORPHANED, signal.SIG_DFL)
        end_with_parent(leader, signal.SIGKILL)
        become(words)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the command is asked, we wait
    os.closerange(0, 3)  # so that its output ends when the command does
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        if code != -signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(leader, -code)
    os._exit(code)


def end_with_parent(parent: int, number: int) -> None:
    """Have the kernel send the signal when the parent ends, or end now."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:
            os._exit(1)


def end_group(number: int, frame: FrameType | None) -> None:
    os.killpg(0, signal.SIGKILL)


def become(words: list[str]) -> None:
    """Become the command, or say why not."""
    try:
        os.execvp(words[0], words)  # noqa: S606  # the operator's command, no shell
    except OSError as error:
        sys.stderr.write(f"{words[0]}: {error.strerror}\n")
        sys.stderr.flush()
        os._exit(NOT_FOUND)


if __name__ == "__main__":
    main()
