"""Management commands on an installation that is not there yet."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from unittest.mock import Mock

import pytest
from cryptography.fernet import Fernet
from django.db import OperationalError, ProgrammingError

from agentsite.layout import exit_if_data_unusable
from agentsite.packaging import manage
from agentsite.supervise import ROOT
from tests.faults.site import environment


def run_manage(data: Path, *words: str, **more: str) -> "CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=ROOT,
        env=environment(data) | more,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("command", ["doctor", "prepare"])
@pytest.mark.parametrize("below", ["", "data"])
@pytest.mark.parametrize("has_keys", [False, True])
def test_a_data_folder_that_cannot_be_used_is_one_sentence(
    tmp_path, command, below, has_keys
):
    data = tmp_path / "file" / below
    (tmp_path / "file").touch()
    keys = {
        "SECRET_KEY": "k" * 50,
        "AGENTSITE_ENCRYPTION_KEYS": Fernet.generate_key().decode(),
    }

    ended = run_manage(data, command, **(keys if has_keys else {}))

    assert ended.stderr.splitlines() == [
        f"The data folder {data} cannot be used (Not a directory). Make it a writable "
        "folder, or set AGENTSITE_DATA to another folder."
    ]
    assert ended.returncode == 1


def test_a_data_folder_on_a_full_disk_is_named():
    error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(SystemExit) as ended, exit_if_data_unusable(Path("/data")):
        raise error

    assert ended.value.code == (
        "The data folder /data cannot be used (No space left on device). "
        "Free disk space, or set AGENTSITE_DATA to another folder."
    )


@pytest.mark.slow
def test_a_database_without_tables_is_one_sentence(tmp_path):
    ended = run_manage(tmp_path, "create_token", "admin")

    (sentence,) = ended.stderr.splitlines()
    assert sentence.startswith("The database is not prepared (no such table: ")
    assert ended.returncode == 1


@pytest.mark.parametrize("words", ["create_token admin", "check_invariants", "prepare"])
@pytest.mark.slow
def test_a_database_that_is_away_is_one_sentence(tmp_path, words):
    url = "postgresql://ann:canary-of-a-password@127.0.0.1:9/site"

    ended = run_manage(tmp_path, *words.split(), DATABASE_URL=url)

    (sentence,) = ended.stderr.splitlines()
    assert "The database cannot be used: " in sentence
    assert "Connection refused" in sentence
    assert "canary" not in sentence
    assert ended.returncode == 1


@pytest.fixture
def fail(monkeypatch) -> Callable[[Exception], None]:
    """Let each command raise the given error."""

    def fail_with(error: Exception) -> None:
        command = Mock(side_effect=error)
        monkeypatch.setattr(manage, "execute_from_command_line", command)

    return fail_with


@pytest.mark.django_db
def test_an_error_of_a_database_that_accepts_connections_is_one_sentence(fail):
    fail(OperationalError("canceling statement due to statement timeout\nmore"))

    with pytest.raises(SystemExit) as ended:
        manage.manage(["prune"])

    assert str(ended.value.code).startswith(
        "The database reported an error: canceling statement due to statement timeout."
    )


@pytest.mark.parametrize(
    ("error", "words"),
    [
        pytest.param(ProgrammingError("syntax error"), [], id="statement"),
        pytest.param(ZeroDivisionError(), [], id="other"),
        pytest.param(OperationalError("timeout"), ["--traceback"], id="option"),
    ],
)
def test_other_errors_keep_their_traceback(fail, error, words):
    fail(error)

    with pytest.raises(type(error)):
        manage.manage(["prune", *words])
