"""Secrets in 0600 files of the data folder, created when first needed."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path


def read_or_create_secret(path: Path, make: Callable[[], str]) -> str:
    """Return the secret in `path`; create it if missing.

    Safe between processes: the file appears complete or not at all, and concurrent
    callers all read the same secret.
    """
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        pass
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(make() + "\n")
            file.flush()
            os.fsync(file.fileno())
        publish_secret_file(draft, path)
    finally:
        os.unlink(draft)
    return path.read_text().strip()


def publish_secret_file(draft: str, path: Path) -> None:
    """Link the draft to its name, unless another process was first."""
    try:
        os.link(draft, path)
    except FileExistsError:
        return
