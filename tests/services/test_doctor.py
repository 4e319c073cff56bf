"""What `manage.py doctor` finds, part by part, on real servers."""

import json
import subprocess
from collections.abc import Callable, Iterator
from datetime import timedelta
from io import StringIO

import pytest
import redis
from django.core.management import call_command
from django.db import OperationalError, connection
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from runs.models import SiteRestore
from runs.services.doctor import examine, machine, servers, work
from runs.services.doctor.finding import Finding
from runs.services.health import direct_connection
from runs.services.health.queue import measure_queue_health
from runs.services.health.status import check_health
from runs.store.database_clock import db_time_from_now
from tests.fakes.model_server import model_server
from tests.faults.site import run_python
from tests.make import make_provider, make_run, make_worker
from tests.support.servers import start_redis

pytestmark = pytest.mark.django_db


def only(check: Callable[[], Iterator[Finding]]) -> Finding:
    """Return the only finding; a problem comes with its fix."""
    (found,) = check()
    assert bool(found.fix) is (found.status != "ok")
    return found


def test_settings_that_fit_are_ok():
    assert only(machine.check_settings).status == "ok"


@pytest.mark.parametrize(
    ("changes", "status", "word"),
    [
        pytest.param({"DEBUG": True}, "warning", "DEBUG", id="debug"),
        pytest.param(
            {"DEBUG": True, "IS_LOCAL": False, "IS_HTTPS": True, "PRIVATE_HOSTS": ""},
            "error",
            "DEBUG",
            id="public-debug",
        ),
        pytest.param(
            {"PUBLIC_URL": "https://a.example"}, "error", "a.example", id="host"
        ),
        pytest.param(
            {"IS_LOCAL": False, "PRIVATE_HOSTS": ""}, "warning", "encrypted", id="http"
        ),
        pytest.param(
            {"IS_LOCAL": False, "IS_HTTPS": True, "PRIVATE_HOSTS": "tool=10.0.0.1"},
            "warning",
            "10.0.0.1",
            id="private-hosts",
        ),
    ],
)
def test_wrong_settings_are_named(settings, changes, status, word):
    settings.ALLOWED_HOSTS = ["localhost"]
    for name, value in changes.items():
        setattr(settings, name, value)

    found = only(machine.check_settings)

    assert (found.status, word in found.message) == (status, True)


@pytest.mark.parametrize(
    ("folder_mode", "file", "mode", "bad"),
    [
        pytest.param(0o700, "secret_key", 0o600, [], id="private"),
        pytest.param(0o700, "secret_key", 0o640, ["secret_key"], id="secret"),
        pytest.param(0o700, "db.sqlite3", 0o644, [], id="in-a-private-folder"),
        pytest.param(0o755, "db.sqlite3", 0o644, ["", "db.sqlite3"], id="open-folder"),
        pytest.param(0o755, "other", 0o644, [], id="nothing-private"),
    ],
)
def test_files_that_others_can_read_are_named(
    settings, tmp_path, folder_mode, file, mode, bad
):
    settings.DATA_DIR = tmp_path
    (tmp_path / file).touch(mode)
    (tmp_path / file).chmod(mode)
    tmp_path.chmod(folder_mode)

    found = [one for one in machine.check_private_files() if one.status == "error"]

    assert [one.fix.split()[-1] for one in found] == [
        str(tmp_path / name) for name in bad
    ]


@pytest.mark.parametrize(
    ("limit", "status"),
    [("NO_SPACE", "error"), ("LITTLE_SPACE", "warning"), ("", "ok")],
)
def test_a_full_disk_is_reported(monkeypatch, limit, status):
    if limit:
        monkeypatch.setattr(machine, "LITTLE_SPACE", 2**80)
        monkeypatch.setattr(machine, limit, 2**80)

    assert only(machine.check_disk).status == status


def test_a_data_folder_that_cannot_be_written_is_reported(settings, tmp_path):
    settings.DATA_DIR = tmp_path
    assert only(machine.check_data_folder).status == "ok"

    settings.DATA_DIR = tmp_path / "file"
    settings.DATA_DIR.touch()
    found = only(machine.check_data_folder)

    assert (found.status, str(settings.DATA_DIR) in found.message) == ("error", True)
    assert machine.check_data_folder in examine.ALONE


def test_a_sandbox_that_does_not_hold_is_reported(settings, monkeypatch):
    assert only(machine.check_sandbox).status == "ok"

    settings.CPYTHON = True
    monkeypatch.setattr(machine, "find_sandbox_flaw", lambda: "It does not hold.")

    assert only(machine.check_sandbox).status == "error"


def test_a_database_that_works_is_named_with_its_version():
    found = only(servers.check_database_server)

    assert found.status == "ok"
    assert found.message.lower().startswith(connection.vendor)


@pytest.mark.parametrize(
    ("host", "cause"),
    [
        pytest.param("127.0.0.1:9", "Connection refused", id="closed-port"),
        pytest.param("no-such-host.invalid", "failed to resolve host", id="host"),
    ],
)
@pytest.mark.slow
def test_why_a_pool_gets_no_connection_is_named(tmp_path, host, cause):
    url = f"postgresql://ann:canary-of-a-password@{host}/site"
    code = "from agentsite.packaging.manage import manage; manage(['doctor', '--json'])"

    with pytest.raises(subprocess.CalledProcessError) as ended:
        run_python(tmp_path, code, DATABASE_URL=url)

    checks = json.loads(ended.value.stdout)["checks"]
    (found,) = [one for one in checks if one["check"] == "database"]
    assert found["message"].startswith("The database cannot be used: ")
    assert cause in found["message"]
    assert "canary" not in ended.value.stdout + ended.value.stderr


@pytest.mark.parametrize("part", ["NAME", "USER"])
def test_a_missing_database_or_role_is_named(monkeypatch, part):
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has no names")
    wrong = connection.copy()
    wrong.settings_dict[part] = "nope"
    monkeypatch.setattr(direct_connection, "connection", wrong)

    assert '"nope"' in direct_connection.find_connection_problem()


def test_a_pool_that_is_too_small_is_no_problem_of_the_server(monkeypatch):
    def wait_for_pool() -> str:
        raise OperationalError("couldn't get a connection after 3.00 sec")

    monkeypatch.setattr(servers, "_read_version", wait_for_pool)

    assert "couldn't get a connection" in only(servers.check_database_server).message


def test_missing_migrations_are_counted():
    newest = MigrationRecorder(connection).migration_qs.filter(app="sessions")
    newest.delete()

    found = only(servers.check_database_server)

    assert (found.status, "1 migrations" in found.message) == ("error", True)


def test_more_pools_than_connections_are_a_warning():
    if connection.vendor != "postgresql":
        assert list(servers.check_connections()) == []
        return
    assert only(servers.check_connections).status == "ok"

    for _ in range(100):
        make_worker()

    assert only(servers.check_connections).status == "warning"


def test_four_workers_and_a_web_server_fit_the_default_of_postgresql(settings):
    assert servers.count_pool_connections(4) == 20 + 4 * 12

    settings.WEB_POOL = settings.WORKER_POOL = 5
    assert servers.count_pool_connections(4) == 25


@pytest.mark.parametrize(("hours", "status"), [(0, "ok"), (1, "error"), (-1, "error")])
def test_a_clock_that_differs_is_reported(monkeypatch, hours, status):
    now = timezone.now() + timedelta(hours=hours)
    monkeypatch.setattr(timezone, "now", lambda: now)

    assert only(servers.check_clock).status == status


@pytest.fixture
def own_redis(tmp_path, settings) -> Iterator["redis.Redis"]:
    """A Redis of this test's own, which the settings name."""
    socket = tmp_path / "redis.sock"
    server = start_redis(socket)
    settings.REDIS_URL = f"unix://{socket}"
    with redis.Redis(unix_socket_path=str(socket)) as client:
        yield client
    server.kill()
    server.wait()


@pytest.mark.parametrize(
    ("options", "status", "word"),
    [
        pytest.param({"appendonly": "yes"}, "ok", "writes", id="persistent"),
        pytest.param({"appendonly": "no"}, "warning", "disk", id="memory-only"),
        pytest.param(
            {"maxmemory": "100mb", "maxmemory-policy": "allkeys-lru"},
            "error",
            "allkeys-lru",
            id="evicts",
        ),
        pytest.param({"maxmemory": "1"}, "error", "no writes", id="full"),
    ],
)
def test_a_redis_that_loses_or_refuses_messages_is_reported(
    own_redis, options, status, word
):
    for name, value in options.items():
        own_redis.config_set(name, value)

    found = only(servers.check_redis)

    assert (found.status, word in found.message) == (status, True)


@pytest.mark.parametrize("query", ["", "?password=wrong"])
def test_a_missing_or_wrong_password_of_redis_is_named(own_redis, settings, query):
    own_redis.config_set("requirepass", "right")
    settings.REDIS_URL += query

    found = only(servers.check_redis)

    assert found.status == "error"
    assert "password for Redis is missing or wrong" in found.message
    assert "REDIS_PASSWORD_FILE" in found.fix


def test_a_redis_that_is_away_is_reported(settings):
    settings.REDIS_URL = "redis://127.0.0.1:9/0"

    assert only(servers.check_redis).status == "error"


def test_workers_that_take_no_runs_are_reported():
    assert only(work.check_workers).status == "error"
    assert only(work.check_sweep).status == "error"

    make_worker(last_sweep=db_time_from_now(-5))
    assert only(work.check_workers).status == "ok"
    assert only(work.check_sweep).status == "ok"

    make_run(queued_at=timezone.now() - timedelta(minutes=5))
    assert only(work.check_workers).status == "error"


def test_a_sweeper_that_is_silent_is_reported():
    old = db_time_from_now(-900)
    make_worker(last_sweep=db_time_from_now(-600), started_at=old)

    assert "60" in only(work.check_sweep).message


def test_a_worker_has_time_for_its_first_sweep():
    worker = make_worker(started_at=db_time_from_now(-2))
    assert only(work.check_sweep).status == "ok"

    worker.started_at = db_time_from_now(-60)
    worker.save()
    assert only(work.check_sweep).status == "error"


def test_a_site_that_is_paused_after_a_restore_is_reported():
    assert list(work.check_restore()) == []

    SiteRestore.objects.create(backup_at=timezone.now())

    assert only(work.check_restore).status == "error"


@pytest.mark.parametrize(
    ("confirmed_seconds", "stuck"),
    [
        pytest.param(None, 0, id="paused"),
        pytest.param(5, 0, id="just-confirmed"),
        pytest.param(300, 1, id="confirmed"),
    ],
)
def test_no_run_is_stuck_while_the_site_is_paused(confirmed_seconds, stuck):
    make_worker()
    make_run(queued_at=timezone.now() - timedelta(minutes=5))
    confirmed = confirmed_seconds and db_time_from_now(-confirmed_seconds)
    SiteRestore.objects.create(backup_at=timezone.now(), confirmed_at=confirmed)

    assert only(work.check_workers).status == ("error" if stuck else "ok")
    assert measure_queue_health().stuck == stuck
    assert ("stuck_runs" in check_health().degraded) is bool(stuck)


def test_a_key_that_cannot_be_decrypted_is_reported():
    provider = make_provider(slug="old", sealed_key="of another installation")

    found = only(work.check_stored_secrets)

    assert (found.status, provider.slug in found.message) == ("error", True)
    assert list(work.check_providers()) == []


@pytest.mark.django_db(transaction=True)
def test_providers_that_do_not_respond_are_named_and_their_keys_are_not(settings):
    settings.PRIVATE_HOSTS = "provider=127.0.0.1"
    away = make_provider(slug="away")
    away.set_key("canary-of-a-key")
    away.save()
    with model_server(script=[]) as server:
        make_provider(slug="works", base_url=server.base_url)
        make_provider(slug="zarchived", archived_at=timezone.now())

        found = list(work.check_providers())

    assert [(one.status, one.message.split(":")[0]) for one in found] == [
        ("warning", "away"),
        ("ok", "works"),
    ]
    assert "canary" not in str(found)


def report(*options: str) -> tuple[str, int]:
    """Run the command; return what it printed, and its exit code."""
    out = StringIO()
    try:
        call_command("doctor", *options, stdout=out)
    except SystemExit as ended:
        return out.getvalue(), int(ended.code or 0)
    return out.getvalue(), 0


def test_the_command_fails_on_an_error_and_says_how_to_fix_it(settings):
    settings.REDIS_URL = "redis://127.0.0.1:9/0"

    said, code = report()

    assert code == 1
    assert "error    redis        Redis cannot be used" in said
    assert "Fix: Check the variable REDIS_URL" in said
    assert said.splitlines()[-1].endswith(" errors")


def test_the_command_succeeds_with_warnings(own_redis):
    make_worker(last_sweep=db_time_from_now(-5))

    said, code = report("--json")

    message = json.loads(said)
    statuses = {one["check"]: one["status"] for one in message["checks"]}
    assert (message["ok"], code) == (True, 0)
    assert statuses["redis"] == "warning"
    assert {
        "settings",
        "files",
        "disk",
        "database",
        "clock",
        "sweep",
    } <= statuses.keys()


def test_a_check_that_breaks_is_an_error_and_the_others_still_run(monkeypatch):
    def check_luck() -> Iterator[Finding]:
        raise ZeroDivisionError("no luck")

    monkeypatch.setattr(examine, "ALONE", (check_luck, machine.check_disk))
    monkeypatch.setattr(examine, "NEED_DATABASE", ())

    first, second, _ = examine.examine_site()

    assert (first.check, first.status) == ("luck", "error")
    assert "no luck" in first.message
    assert second.check == "disk"
