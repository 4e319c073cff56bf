"""Where the code is and where data goes, in a clone or installed from a wheel.

Standard library only, like `agentsite.supervise`.
"""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
BUNDLE = PACKAGE / "_bundle"
"""Only a wheel has it: `runs`, `tools` and `templates`, names too common for others."""
IS_INSTALLED = BUNDLE.is_dir()
ROOT = BUNDLE if IS_INSTALLED else PACKAGE.parent
"""The folder of `runs`, `tools` and `templates`."""
START_COMMAND = "agentsite run" if IS_INSTALLED else "make run"
MANAGE_COMMAND = "agentsite manage" if IS_INSTALLED else "manage.py"


def make_packages_importable() -> None:
    """Let this process import `runs` and `tools`, before packages of the same name."""
    if IS_INSTALLED and str(BUNDLE) not in sys.path:
        sys.path.insert(0, str(BUNDLE))


def get_default_data_folder() -> Path:
    """Return the data folder if AGENTSITE_DATA is not set.

    `var` in a clone; a folder of the user for a wheel, whose own is replaced.
    """
    if not IS_INSTALLED:
        return Path("var")
    if sys.platform == "darwin":
        return Path("~/Library/Application Support/agentsite")
    return Path(os.environ.get("XDG_DATA_HOME") or "~/.local/share") / "agentsite"


def resolve_data_folder(path: Path) -> Path:
    """Resolve a relative path from the clone, or from where an installed one started.

    Exit if the path needs a home folder and there is none.
    """
    try:
        return (Path.cwd() if IS_INSTALLED else ROOT) / path.expanduser()
    except RuntimeError:
        sys.exit("Your user has no home folder. Set AGENTSITE_DATA to another folder.")


@contextmanager
def exit_if_data_unusable(data: Path) -> Iterator[None]:
    """Exit with one sentence if the block cannot read or write the data folder."""
    try:
        yield
    except OSError as error:
        sys.exit(describe_unusable_data(data, error))


def describe_unusable_data(data: Path, error: OSError) -> str:
    """Return why the data folder cannot be used, and what to do."""
    is_full = error.errno in {errno.ENOSPC, errno.EDQUOT}
    fix = "Free disk space" if is_full else "Make it a writable folder"
    return (
        f"The data folder {data} cannot be used ({error.strerror}). "
        f"{fix}, or set AGENTSITE_DATA to another folder."
    )
