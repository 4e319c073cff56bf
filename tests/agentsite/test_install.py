"""Making the environment on a machine where something is missing."""

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def clone(tmp_path) -> Path:
    """A folder with no environment yet, and a lock of nothing."""
    (tmp_path / "agentsite").mkdir()
    (tmp_path / "agentsite" / "__init__.py").touch()
    shutil.copy(ROOT / "agentsite" / "install.py", tmp_path / "agentsite")
    (tmp_path / "some.lock").touch()
    return tmp_path


def install(clone: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "agentsite.install", "some.lock"],
        cwd=clone,
        env={**os.environ, "PIP_NO_INDEX": "1", **variables},
        capture_output=True,
        text=True,
    )


def give_environment(clone: Path) -> None:
    """Make one quickly, with this environment's pip in it."""
    venv.create(clone / ".venv", symlinks=True, system_site_packages=True)


def test_a_missing_venv_package_is_named(clone):
    (clone / "venv.py").write_text(
        "import subprocess\n"
        "def create(*_, **__):\n"
        "    raise subprocess.CalledProcessError(1, 'ensurepip')  # as on Debian\n"
    )

    done = install(clone)

    assert done.returncode == 1
    assert "apt-get install python3-venv" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (clone / ".venv").exists()


@pytest.mark.slow
def test_a_failed_install_prints_the_output_of_pip(clone):
    give_environment(clone)
    (clone / "some.lock").write_text(f"nothing==1 --hash=sha256:{'0' * 64}\n")

    done = install(clone)

    assert done.returncode == 1
    assert "nothing==1" in done.stdout
    assert "could not be installed" in done.stderr
    assert not (clone / ".venv" / "some.made").exists()


def test_a_second_install_does_nothing(clone):
    give_environment(clone)

    first, second = install(clone), install(clone)

    assert "Installing 0 packages" in first.stdout
    assert (second.returncode, second.stdout) == (0, "")
