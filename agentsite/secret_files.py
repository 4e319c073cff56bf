"""Secrets kept as 0600 files in the data folder, made by whoever needs them first."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path


def kept(path: Path, make: Callable[[], str]) -> str:
    """Return the secret in `path`; make it where it is missing.

    Safe between processes: the file appears whole or not at all, and all of those
    who make it at the same time read the same one.
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
        publish(draft, path)
    finally:
        os.unlink(draft)
    return path.read_text().strip()


def publish(draft: str, path: Path) -> None:
    """Give the draft its name, unless someone else was first."""
    try:
        os.link(draft, path)
    except FileExistsError:
        return
