"""The supervisor, started as `make run` starts it, and broken in every way."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agentsite.child_processes import Child, ProcessGroup, describe_exit, restart_child
from agentsite.supervise import (
    ROOT,
    Installation,
    StartupError,
    choose_socket_path,
    read_installation,
)
from tests.faults.site import Site, environment, is_alive, ps, start
from tests.support.servers import free_port
from tests.support.timing import wait_until

pytestmark = pytest.mark.faults


@pytest.fixture
def sites(tmp_path) -> Iterator[Callable[..., Site]]:
    """Start sites in one data folder; end those that still run."""
    begun: list[Site] = []

    def begin(data: Path = tmp_path / "data", **options: Any) -> Site:
        begun.append(start(data, **options))
        return begun[-1]

    yield begin
    for site in begun:
        site.end()


@pytest.fixture
def started(sites) -> Site:
    """A site that answers."""
    site = sites()
    site.wait_for("Agentsite is running at")
    return site


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> Iterator[Site]:
    """A site that created all it has, for tests that only look at it."""
    site = start(tmp_path_factory.mktemp("site") / "new" / "data")
    try:
        site.wait_for("Agentsite is running at")
        yield site
    finally:
        site.end()


def test_ctrl_c_ends_all_in_order_and_leaves_nothing(started):
    pids = started.children()
    assert set(pids) == {"valkey", "web", "worker"}

    started.process.send_signal(signal.SIGINT)

    assert started.process.wait(120) == 0
    assert "Stopping" in started.said
    assert [name for name, pid in pids.items() if is_alive(pid)] == []


@pytest.mark.slow
def test_kill_9_leaves_no_orphan_and_the_next_start_works(started, sites):
    pids = started.children()

    started.process.kill()
    started.process.wait()

    wait_until(lambda: not any(map(is_alive, pids.values())), seconds=60)
    again = sites(port=started.port)
    again.wait_for("Agentsite is running at")
    again.process.terminate()
    assert again.process.wait(120) == 0


SIGNALS_AT_ANY_MOMENT = """
import signal, time
from agentsite.child_processes import SignalEvent

wish = SignalEvent()
signal.signal(signal.SIGALRM, lambda *_: wish.set())
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
until = time.monotonic() + 2
while time.monotonic() < until:
    assert wish.wait(5), "a signal was not heard"
    wish.clear()
signal.setitimer(signal.ITIMER_REAL, 0)
wish.clear()
assert not wish.wait(0.01)
"""


def test_a_signal_is_noticed_at_any_moment():
    command = [sys.executable, "-c", SIGNALS_AT_ANY_MOMENT]

    assert subprocess.run(command, cwd=ROOT, timeout=120, check=False).returncode == 0


ENDS_IN_ORDER = """
import pathlib, signal, sys, time

def end(*_):
    time.sleep(1)
    pathlib.Path(sys.argv[1], "ended").touch()
    sys.exit()

signal.signal(signal.SIGTERM, end)
pathlib.Path(sys.argv[1], "begun").touch()
time.sleep(60)
"""


def test_two_signals_of_one_gesture_leave_time_to_end_in_order(tmp_path, monkeypatch):
    monkeypatch.setattr("agentsite.child_processes.DUPLICATE_SIGNAL_SECONDS", 3)
    family = ProcessGroup()
    command = [sys.executable, "-c", ENDS_IN_ORDER, str(tmp_path)]
    family.add(Child("worker", command, tmp_path / "log"))
    wait_until((tmp_path / "begun").exists)

    second = threading.Timer(0.05, family.stop_requested.set)
    second.start()
    family.stop()

    assert (tmp_path / "ended").exists()


@pytest.mark.parametrize("name", ["web", "worker"])
@pytest.mark.slow
def test_a_frozen_child_is_started_again(sites, name):
    site = sites(AGENTSITE_HANG_SECONDS="15")
    site.wait_for("Agentsite is running at")
    wait_until((site.data / f"{name}.alive").exists, seconds=180)
    before = site.children()

    os.kill(before[name], signal.SIGSTOP)

    site.wait_for(f"{name} does not respond and is killed.")
    wait_until(
        lambda: site.children().get(name, before[name]) != before[name], seconds=60
    )
    wait_until(site.answers, seconds=180)


def test_time_in_which_the_supervisor_was_frozen_too_is_no_hang(tmp_path, monkeypatch):
    now = 1000.0
    monkeypatch.setattr("agentsite.child_processes.time.monotonic", lambda: now)
    child = Child("web", [], tmp_path / "log", alive_file=tmp_path / "alive")
    (tmp_path / "alive").touch()
    child.is_hung()

    now += 3600

    assert not child.is_hung()


@pytest.mark.parametrize("name", ["valkey", "web", "worker"])
@pytest.mark.slow
def test_a_killed_child_is_started_again(started, name):
    before = started.children()

    os.kill(before[name], signal.SIGKILL)

    wait_until(
        lambda: started.children().get(name, before[name]) != before[name], seconds=60
    )
    assert "(signal 9), restarting in 0.5 s" in started.said
    others = {key: pid for key, pid in started.children().items() if key != name}
    assert others == {key: pid for key, pid in before.items() if key != name}
    wait_until(started.answers, seconds=180)


def test_a_second_start_shows_where_the_first_is(undisturbed, sites):
    second = sites(undisturbed.data)

    assert second.process.wait(60) == 1
    assert f"already running at http://localhost:{undisturbed.port}" in second.said


def test_a_management_command_finds_database_and_broker(undisturbed):
    code = (
        "import redis; from django.conf import settings; "
        "print(redis.Redis.from_url(settings.REDIS_URL).ping(), "
        "settings.DATABASES['default']['NAME'], settings.PUBLIC_URL)"
    )

    answer = subprocess.run(
        [sys.executable, "manage.py", "shell", "-v", "0", "-c", code],
        cwd=ROOT,
        env=environment(undisturbed.data),
        capture_output=True,
        text=True,
        check=True,
    )

    assert answer.stdout.split() == [
        "True",
        str(undisturbed.data / "db.sqlite3"),
        f"http://localhost:{undisturbed.port}",
    ]


def test_secrets_are_for_the_owner_only(undisturbed):
    modes = {
        name: (undisturbed.data / name).stat().st_mode & 0o777
        for name in ("secret_key", "encryption_keys", "db.sqlite3", "log/web.log")
    }

    assert set(modes.values()) == {0o600}
    assert undisturbed.data.stat().st_mode & 0o777 == 0o700


def test_no_login_link_reaches_a_log(undisturbed):
    links = re.findall(r"https?://\S+/\S+", undisturbed.said)
    logs = "".join(path.read_text() for path in (undisturbed.data / "log").iterdir())

    assert links
    assert all(link not in logs for link in links)


def test_everything_idle_takes_less_than_400_mb(undisturbed):
    pids = [undisturbed.process.pid, *undisturbed.children().values()]
    kilobytes = [int(line) for line in ps("-o", "rss=", "-p", ",".join(map(str, pids)))]

    assert len(kilobytes) == 4
    assert sum(kilobytes) < 400_000


def test_a_taken_port_is_one_sentence(sites):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        site = sites(port=port)

        assert site.process.wait(60) == 1

    (sentence,) = site.said.splitlines()
    assert sentence.startswith(f"Port {port} on 127.0.0.1 cannot be used")


def test_a_data_folder_that_cannot_be_written_is_one_sentence(tmp_path, sites):
    (tmp_path / "file").write_text("in the way")
    site = sites(tmp_path / "file" / "data")

    assert site.process.wait(60) == 1
    (sentence,) = site.said.splitlines()
    assert sentence.startswith(f"The data folder {site.data} cannot be written")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("AGENTSITE_LEASE_SECONDS", "soon", id="lease"),
        pytest.param("DATABASE_URL", "mysql://x/y", id="database"),
        pytest.param("REDIS_URL", "amqp://x", id="redis"),
    ],
)
def test_a_wrong_variable_is_named_and_nothing_stays(sites, name, value):
    site = sites(**{name: value})

    assert site.process.wait(180) == 1
    assert site.said.startswith(f"The variable {name} ")
    assert "Traceback" not in site.said
    assert ps("-o", "pid=", "--ppid", str(site.process.pid)) == []


def test_a_wrong_port_is_named(monkeypatch):
    monkeypatch.setenv("PORT", "eighty")

    with pytest.raises(StartupError, match=r"^The variable PORT is 'eighty'"):
        read_installation()


def test_a_database_that_is_away_is_a_sentence(sites):
    site = sites(DATABASE_URL=f"postgresql://nobody@127.0.0.1:{free_port()}/none")

    assert site.process.wait(180) == 1
    assert "The database cannot be used: " in site.said
    assert "Traceback" not in site.said


def test_another_redis_is_used_where_one_is_named(sites, redis_url):
    site = sites(REDIS_URL=redis_url)
    site.wait_for("Agentsite is running at")

    assert set(site.children()) == {"web", "worker"}


def test_a_site_in_a_long_path_runs(tmp_path, sites):
    site = sites(tmp_path / ("long" * 30) / "data")
    site.wait_for("Agentsite is running at")

    wait_until(
        lambda: "ready" in (site.data / "log" / "worker.log").read_text(), seconds=180
    )


def test_a_long_path_gets_a_short_socket(tmp_path):
    data = tmp_path / ("long" * 30)
    data.mkdir()
    place = Installation(data=data, host="127.0.0.1", port=1)

    path = choose_socket_path(place)

    assert len(os.fsencode(path)) <= 100
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert (data / "broker").read_text().strip() == f"unix://{path}"
    assert choose_socket_path(place) == path
    path.parent.rmdir()


def test_the_end_of_a_child_is_said_in_words():
    assert (describe_exit(-9), describe_exit(3)) == ("signal 9", "exit code 3")


def test_a_child_that_keeps_failing_waits_longer_each_time(tmp_path, capsys):
    child = Child("sad", [sys.executable, "-c", "exit('alas')"], tmp_path / "log")

    pauses = []
    for _ in range(4):
        child.start()
        child.process.wait()
        restart_child(child)
        pauses += re.findall(r"restarting in (\S+) s", capsys.readouterr().out)
        child.restart_at = 0

    assert pauses == ["0.5", "1", "2", "4"]
