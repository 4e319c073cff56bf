"""`prepare` waits for a database that starts later."""

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError

from runs.management.commands import prepare


@pytest.fixture
def attempts(monkeypatch) -> list[str]:
    """Let the first two connections fail; return a list that gets every attempt."""
    made: list[str] = []

    def try_connection() -> None:
        made.append("attempt")
        if len(made) <= 2:
            raise OperationalError("the database system is starting up")

    monkeypatch.setattr(prepare, "try_connection", try_connection)
    monkeypatch.setattr(prepare, "CONNECT_RETRY_SECONDS", 0)
    return made


@pytest.mark.django_db
def test_it_waits_for_a_database_that_is_late(attempts, capsys, monkeypatch):
    monkeypatch.setattr(prepare, "apply_migrations", lambda: attempts.append("migrate"))
    call_command("prepare", "--no-login-link", "--wait=60")

    assert attempts == ["attempt"] * 3 + ["migrate"]
    assert capsys.readouterr().err.count("Waiting for the database") == 1


def test_without_the_option_it_fails_at_once(attempts):
    with pytest.raises(CommandError, match="starting up"):
        call_command("prepare", "--no-login-link")

    assert len(attempts) == 1


def test_the_wait_is_limited(attempts):
    with pytest.raises(OperationalError):
        prepare.wait_for_database(0)
