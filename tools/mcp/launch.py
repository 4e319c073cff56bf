"""Starts a listed command so that it ends with us: `launch.py PARENT PROGRAM …`.

Run as a file by a bare interpreter; standard library only.
"""

import ctypes
import os
import resource
import signal
import sys

PR_SET_PDEATHSIG = 1
NOT_FOUND = 127


def main() -> None:
    """Become the command."""
    parent, words = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        os.execvp(words[0], words)  # noqa: S606  # the operator's command, no shell
    except OSError as error:
        sys.stderr.write(f"{words[0]}: {error.strerror}\n")
        os._exit(NOT_FOUND)


if __name__ == "__main__":
    main()
