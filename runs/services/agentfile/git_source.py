"""A branch of a git repository in a temporary folder."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runs.services.errors import RunsError

URL = re.compile(r"(https?|ssh|file)://|[\w.-]+@[\w.-]+:")
PASSWORD = re.compile(r"(://)[^/@\s]+@")
MAX_SECONDS = 120
MAX_MESSAGE = 500
"""Characters of what git says that are shown."""


class GitFailed(RunsError):
    """A repository cannot be read."""


def is_git_url(source: str) -> bool:
    """Whether `source` is the address of a repository, and not a folder."""
    return URL.match(source) is not None


@contextmanager
def open_git_branch(url: str, branch: str = "") -> Iterator[Path]:
    """Yield a folder with the newest commit of a branch, and remove it afterwards.

    No hooks or submodules are used, and git asks for no password. Raise `GitFailed`.
    """
    if shutil.which("git") is None:
        raise GitFailed("The program git was not found. Install it, or use a folder.")
    with tempfile.TemporaryDirectory(prefix="agentfiles-") as folder:
        target = Path(folder) / "repository"
        words = ["git", "clone", "--quiet", "--depth=1", "--single-branch", "--no-tags"]
        words += [f"--branch={branch}"] if branch else []
        run_git([*words, "--", url, str(target)])
        yield target


def run_git(words: list[str]) -> None:
    """Run git without questions; raise `GitFailed` with what it wrote."""
    settings = {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ALLOW_PROTOCOL": "http:https:ssh:file",
        "GIT_SSH_COMMAND": "ssh -o BatchMode=yes",
        "GIT_TEMPLATE_DIR": "",
        "LC_ALL": "C",
    }
    try:
        done = subprocess.run(  # noqa: S603  # no shell, and the URL stands after --
            words,
            env={**os.environ, **settings},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=MAX_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise GitFailed(f"git did not finish within {MAX_SECONDS} seconds.") from None
    if done.returncode != 0:
        said = " ".join(done.stderr.decode("utf-8", "replace").split())
        hidden = PASSWORD.sub(r"\1", said)[:MAX_MESSAGE] or "no message"
        raise GitFailed(f"git cannot read the repository: {hidden}")
