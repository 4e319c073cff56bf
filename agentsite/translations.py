"""Message catalogs in `agentsite/locale`, compiled when a process of a clone starts."""

import os
import tempfile
from pathlib import Path

import polib

from agentsite import layout

SOURCE_DIR = Path(__file__).parent / "locale"
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
"""(code, name in that language), the source language first."""


def find_compiled_catalogs(data: Path) -> Path:
    """Return the folder of compiled catalogs: a wheel contains them."""
    if layout.IS_INSTALLED:
        return SOURCE_DIR
    compile_catalogs(data / "locale")
    return data / "locale"


def compile_catalogs(target_dir: Path) -> None:
    """Compile each catalog that is newer than its compiled copy in `target_dir`.

    Concurrent processes write the same bytes, and each write is atomic.
    """
    for source in SOURCE_DIR.glob("*/LC_MESSAGES/*.po"):
        target = target_dir / source.relative_to(SOURCE_DIR).with_suffix(".mo")
        if target.exists() and target.stat().st_mtime >= source.stat().st_mtime:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        compiled = polib.pofile(str(source)).to_binary()
        handle, temporary = tempfile.mkstemp(dir=target.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(compiled)
        os.replace(temporary, target)
