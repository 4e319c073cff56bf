"""Backup and restore of whole sites, with the commands of an operator."""

import hashlib
import json
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.fakes.listener import http, listener
from tests.fakes.model_server import Recorded, model_server
from tests.faults.database.test_database_away import AGENTFILE, call_api, wait_for_end
from tests.faults.functions import LEDGER
from tests.faults.site import ROOT, environment, start
from tests.support.empty_database import copy_empty_sqlite, create_empty_postgresql
from tests.support.postgres import Postgres, find_initdb, postgresql
from tests.support.timing import wait_until

pytestmark = [pytest.mark.faults, pytest.mark.slow]

SWEEP_SECONDS = 0.5


@dataclass
class Installation:
    """A data folder and a database; `manage` runs its commands."""

    data: Path
    variables: dict[str, str] = field(default_factory=dict)

    def manage(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "manage.py", *words],
            cwd=ROOT,
            env=environment(self.data) | self.variables,
            capture_output=True,
            text=True,
            check=False,
        )

    def succeed(self, *words: str) -> str:
        done = self.manage(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def refuse(self, *words: str) -> str:
        """Return the one line with which a command refuses."""
        done = self.manage(*words)
        assert done.returncode == 1
        lines = [line for line in done.stderr.splitlines() if line]
        assert len(lines) == 1, done.stderr
        return lines[0].removeprefix("CommandError: ")

    def users(self) -> list[str]:
        code = (
            "from django.contrib.auth.models import User;"
            "print(*User.objects.order_by('pk').values_list('username', flat=True))"
        )
        return self.succeed("shell", "-v", "0", "-c", code).split()

    def add_user(self, name: str) -> None:
        code = f"from django.contrib.auth.models import User;User(username={name!r})"
        self.succeed("shell", "-v", "0", "-c", f"{code}.save()")


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> Iterator[Postgres | None]:
    """Either a PostgreSQL server of this test's own, or None for SQLite."""
    if request.param == "sqlite":
        yield None
        return
    initdb = find_initdb()
    assert initdb is not None, "install postgresql to run this test"
    with postgresql(initdb) as server:
        yield server


def install(
    folder: Path, name: str, database: Postgres | None, *, is_migrated: bool = True
) -> Installation:
    """Return a new installation: with tables, or with nothing, to restore into."""
    found = Installation(folder / name)
    if database is None:
        if is_migrated:
            copy_empty_sqlite(found.data)
        return found
    if is_migrated:
        create_empty_postgresql(database.server, name)
    else:
        with psycopg.connect(f"{database.server}/postgres", autocommit=True) as server:
            server.execute(f"CREATE DATABASE {name}")  # type: ignore[call-overload]
    found.variables["DATABASE_URL"] = f"{database.server}/{name}"
    return found


def test_a_backup_moves_a_site_and_damaged_ones_change_nothing(tmp_path, database):
    first = install(tmp_path, "first", database)
    second = install(tmp_path, "second", database, is_migrated=False)
    first.succeed("prepare")
    first.add_user("in-backup")
    backup = str(tmp_path / "backup.zip")
    first.succeed("backup", backup)

    assert "already exists" in first.refuse("backup", backup)
    second.succeed("restore", backup)
    assert second.users() == ["admin", "in-backup"]
    keys = (first.data / "encryption_keys").read_text().strip()
    assert keys in (second.data / "encryption_keys").read_text()

    second.add_user("later")
    refused = {
        "nothing": second.refuse("restore", backup),
        "truncated": second.refuse("restore", "--replace", truncated(tmp_path, backup)),
        "changed": second.refuse("restore", "--replace", changed(tmp_path, backup)),
        "partial": second.refuse("restore", "--replace", partial(tmp_path, backup)),
        "newer": second.refuse("restore", "--replace", newer(tmp_path, backup)),
    }
    assert "add --replace" in refused["nothing"]
    assert "not a complete backup" in refused["truncated"]
    assert "does not match its checksum" in refused["changed"]
    assert "newer release (99.0)" in refused["newer"]
    assert refused["partial"]
    assert second.users() == ["admin", "in-backup", "later"]

    second.succeed("restore", "--replace", backup)
    assert second.users() == ["admin", "in-backup"]
    assert second.succeed("check_invariants").endswith(" 0 violations")


def truncated(folder: Path, backup: str) -> str:
    raw = Path(backup).read_bytes()
    return write(folder / "truncated.zip", raw[: len(raw) // 2])


def changed(folder: Path, backup: str) -> str:
    return rewrite(folder / "changed.zip", backup, lambda raw: raw[:-1] + b"!")


def partial(folder: Path, backup: str) -> str:
    """Leave out the end of the database, with a checksum that fits."""
    return rewrite(
        folder / "partial.zip",
        backup,
        lambda raw: raw[: len(raw) * 2 // 3],
        fits=True,
    )


def newer(folder: Path, backup: str) -> str:
    release = {"release": "99.0"}
    return rewrite(folder / "newer.zip", backup, lambda raw: raw, manifest=release)


def write(path: Path, raw: bytes) -> str:
    path.write_bytes(raw)
    return str(path)


def rewrite(
    path: Path,
    backup: str,
    change: Any,
    *,
    fits: bool = False,
    manifest: dict[str, Any] | None = None,
) -> str:
    """Write the backup again with a changed database or manifest."""
    with zipfile.ZipFile(backup) as old, zipfile.ZipFile(path, "w") as new:
        described = json.loads(old.read("manifest.json"))
        for name in described["files"]:
            raw = old.read(name)
            if name.startswith("database"):
                raw = change(raw)
                if fits:
                    described["files"][name] = measure(raw)
            new.writestr(name, raw)
        if manifest:
            described |= manifest
            described["migrations"].append("runs.9999_from_the_future")
        new.writestr("manifest.json", json.dumps(described))
    return str(path)


def measure(raw: bytes) -> dict[str, Any]:
    return {"size": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}


def test_credentials_need_the_keys_of_the_backup(tmp_path):
    first = install(tmp_path, "first", None)
    second = Installation(tmp_path / "second")
    first.succeed("prepare")
    backup = str(tmp_path / "backup.zip")

    assert "does not contain the encryption keys" in first.succeed(
        "backup", "--without-keys", backup
    )

    assert "does not have the encryption keys" in second.refuse("restore", backup)
    second.succeed("restore", "--without-keys", backup)
    keys = (first.data / "encryption_keys").read_text().strip()
    third = Installation(tmp_path / "third", {"AGENTSITE_ENCRYPTION_KEYS": keys})
    third.succeed("restore", backup)


@contextmanager
def running(site: Installation) -> Iterator[Any]:
    found = start(site.data, **site.variables)
    try:
        found.wait_for("Agentsite is running at")
        yield found
    finally:
        found.end()


def pay_once(asked: Recorded) -> object:
    *_, last = asked.body["messages"]
    arguments = '{"whom": "ann", "until": "released"}'
    paying = {"name": "pay", "arguments": arguments, "id": "c"}
    return "Paid." if last["role"] == "tool" else {"tool_calls": [paying]}


WORK = """
from datetime import timedelta
from django.contrib.auth.models import User
from django.utils import timezone
from runs.models import Agent, Schedule
from tests.make import make_webhook
admin, agent = User.objects.get(username="admin"), Agent.objects.get(slug="payer")
make_webhook(admin, url="http://127.0.0.1:{port}/hook")
Schedule.objects.create(
    owner=admin, agent=agent, name="s", inputs={{"input": "Pay."}}, cron="0 0 1 1 *",
    next_at=timezone.now() + timedelta(days=9),
)
"""


def test_a_restored_copy_does_nothing_until_it_is_confirmed(tmp_path, database):
    """The original has gone on; its copy would repeat calls, times and deliveries."""
    ledger = tmp_path / "ledger"
    with ExitStack() as stack:
        model = stack.enter_context(model_server(script=pay_once))
        hook = stack.enter_context(listener(answer=http("503 Away")))
        original = install(tmp_path, "a", database)
        copy = install(tmp_path, "b", database, is_migrated=False)
        for each in (original, copy):
            each.variables |= {
                "AGENTSITE_TOOL_MODULES": "tests.faults.functions",
                "AGENTSITE_PRIVATE_HOSTS": "provider=127.0.0.1;webhook=127.0.0.1",
                "AGENTSITE_SWEEP_SECONDS": str(SWEEP_SECONDS),
                "AGENTSITE_LEASE_SECONDS": "30",
                LEDGER: str(ledger),
            }
        copy.variables["AGENTSITE_LEASE_SECONDS"] = "3"
        backup = str(tmp_path / "backup.zip")

        with running(original) as site:
            agents = tmp_path / "agents.yaml"
            agents.write_text(AGENTFILE.format(url=model.base_url))
            original.succeed("import_agentfile", str(agents))
            original.succeed("shell", "-v", "0", "-c", WORK.format(port=hook.port))
            token = original.succeed("create_token", "admin").splitlines()[-1]
            body = {"agent": "payer", "inputs": {"input": "Pay."}}
            runs = [call_api(site, token, "", body)["id"] for _ in range(3)]
            wait_until(lambda: count_lines(ledger) == 3)
            original.succeed("backup", backup)
            (tmp_path / "released").touch()
            for run in runs:
                assert wait_for_end(site, token, run)["status"] == "succeeded"
            assert "Stop it" in original.refuse("restore", "--replace", backup) or (
                database is not None
            )

        copy.succeed("restore", backup)
        copy.succeed("shell", "-v", "0", "-c", MAKE_EVERYTHING_DUE)
        done = (count_lines(ledger), len(model.requests), hook.knocks)
        with running(copy) as site:
            added = call_api(site, token, "", body)["id"]
            time.sleep(12 * SWEEP_SECONDS)
            assert (count_lines(ledger), len(model.requests), hook.knocks) == done

            copy.succeed("confirm_restore", "--webhooks=send", "--schedules=continue")
            assert wait_for_end(site, token, added)["status"] == "succeeded"
            wait_until(lambda: hook.knocks > done[2])
            stopped = [call_api(site, token, f"/{run}") for run in runs]

    assert {run["error"]["code"] for run in stopped} == {"restored"}
    assert count_lines(ledger) == done[0] + 1
    assert copy.succeed("check_invariants").endswith(" 0 violations")


MAKE_EVERYTHING_DUE = """
from django.db.models.functions import Now
from runs.models import Delivery, Run, Schedule
Run.objects.filter(status="running").update(lease_until=Now())
Schedule.objects.update(next_at=Now())
Delivery.objects.filter(status="waiting").update(available_at=Now(), enqueued_at=None)
"""


def count_lines(ledger: Path) -> int:
    return len(ledger.read_text().splitlines()) if ledger.exists() else 0
