"""The lock files: exact versions with hashes, from wherever they are installed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PINNED = re.compile(r"[A-Za-z0-9._-]+(\[[a-z,]+\])?==\S+")


@pytest.mark.parametrize("part", ["", "-dev", "-servers"])
def test_every_package_is_pinned_and_hashed(part):
    text = (ROOT / f"requirements{part}.lock").read_text()
    entries = re.split(r"\n(?=\S)", text.strip().replace("\\\n", ""))

    assert len(entries) > 30
    for entry in entries:
        assert PINNED.match(entry), entry[:80]
        assert "--hash=sha256:" in entry, entry[:80]
    assert "://" not in text


@pytest.mark.slow
def test_no_package_misses_another_one():
    """They are installed without looking for what they require."""
    check = [sys.executable, "-m", "pip", "check"]

    checked = subprocess.run(check, capture_output=True, text=True)

    assert checked.returncode == 0, checked.stdout
