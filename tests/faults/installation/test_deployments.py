"""The processes of Compose, Kubernetes and systemd, started outside containers.

With their commands, variables and health checks; as an unprivileged user without
capabilities, from a copy of the code that it cannot write, with secrets from files.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg
import pytest
import redis
import yaml
from cryptography.fernet import Fernet

from tests.faults.installation.deployments import (
    FOLDER,
    READERS,
    ROOT,
    Deployment,
    Process,
)
from tests.support.postgres import find_initdb, postgresql
from tests.support.servers import free_port, redis_program
from tests.support.timing import wait_until

pytestmark = [pytest.mark.faults, pytest.mark.slow]

NOBODY = 65534
HANG_SECONDS = 20
CODE = ("agentsite", "runs", "tools", "templates", "manage.py")
SECRETS = {
    "secret_key": "a-secret-key-from-a-file-that-is-long-enough-for-django",
    "encryption_keys": Fernet.generate_key().decode(),
    "postgres_password": "of/postgres@file",
    "redis_password": "of/redis@file",
    "metrics_token": "a-token-from-a-file",
}
MODULE = """
from tools.registry import tool

@tool(effect="read")
def hello() -> str:
    '''Say hello.'''
    return "hello"
"""


@dataclass
class Machine:
    """The servers, files and processes of one test."""

    folder: Path
    postgres_port: int
    redis_port: int
    stack: ExitStack
    started: int = 0

    def adapt(self, deployment: Deployment, process: Process, *, port: int) -> Process:
        """Use our servers, and folders that stand for those of the deployment."""
        self.started += 1
        own = self.folder / f"own-{self.started}"
        own.mkdir()
        os.chown(own, NOBODY, NOBODY)
        adapted = process.replaced(
            {
                deployment.secrets: str(self.folder / "secrets"),
                "/data": str(own),
                "/var/lib": str(own),
                "/tmp/": f"{own}/",
                "/modules": str(self.folder / "modules"),
                "/opt/agentsite": str(self.folder),
                "@postgres:5432": f"@127.0.0.1:{self.postgres_port}",
                "@127.0.0.1:5432": f"@127.0.0.1:{self.postgres_port}",
                "//valkey:6379": f"//127.0.0.1:{self.redis_port}",
                "//127.0.0.1:6379": f"//127.0.0.1:{self.redis_port}",
                f":{deployment.port}/": f":{port}/",
            }
        )
        words = [str(port) if w == deployment.port else w for w in adapted.command]
        more = {
            "PATH": f"{ROOT / '.venv/bin'}:{os.environ['PATH']}",
            "TMPDIR": str(own),
            "HOME": str(own),
            "AGENTSITE_DEMO": "1",
            "AGENTSITE_HANG_SECONDS": str(HANG_SECONDS),
            "AGENTSITE_TOOL_MODULES": "my_tools",
            "PYTHONPATH": str(self.folder / "modules"),
            "NOTIFY_SOCKET": str(own / "notify"),
        }
        return replace(adapted, command=words, environment=adapted.environment | more)

    def start(self, process: Process) -> "subprocess.Popen[bytes]":
        log = (self.folder / f"log-{self.started}").open("wb")
        with log:
            started = subprocess.Popen(
                confine(process.command),
                cwd=self.folder / "code",
                env=process.environment,
                stdout=log,
                stderr=log,
                umask=0o077,
            )
        self.stack.callback(end, started)
        return started

    def run(
        self, process: Process, *command: str
    ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            confine(list(command) or process.command),
            cwd=self.folder / "code",
            env=process.environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def is_healthy(self, process: Process, *, port: int) -> bool:
        """Whether the health check of the deployment says so."""
        if isinstance(process.check, list) and process.check:
            return self.run(process, *process.check).returncode == 0
        if "uvicorn" not in process.command:
            return (Path(process.environment["TMPDIR"]) / "notified").exists()
        try:
            path = process.check or "/readyz"
            urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5).close()
        except OSError:
            return False
        return True

    def logs(self) -> str:
        paths = sorted(self.folder.glob("log-*"))
        return "\n".join(f"{p.name}: {p.read_text()[-2000:]}" for p in paths)


def confine(command: list[str]) -> list[str]:
    """Return the command as a user without rights, as root cannot be kept out."""
    if os.geteuid() != 0:
        return command
    limits = ["--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]
    user = [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    return ["setpriv", *user, *limits, "--", *command]


def end(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        process.kill()
    process.wait()


@pytest.fixture
def machine() -> Iterator[Machine]:
    initdb = find_initdb()
    assert initdb is not None, "install postgresql to run this test"
    folder = Path(tempfile.mkdtemp(prefix="agentsite-deploy-", dir="/tmp"))
    folder.chmod(0o755)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        server = stack.enter_context(postgresql(initdb))
        require_password(server.folder / "db", server.port)
        port = free_port()
        stack.callback(
            end,
            subprocess.Popen(
                [redis_program(), "--port", str(port), "--bind", "127.0.0.1"]
                + ["--save", "", "--requirepass", SECRETS["redis_password"]],
                stdout=subprocess.DEVNULL,
                cwd=folder,
            ),
        )
        wait_until(lambda: answers(port))
        copy_code(folder)
        yield Machine(folder, server.port, port, stack)


def require_password(folder: Path, port: int) -> None:
    """Create the role and its database; connections of the role need its password."""
    url = f"postgresql://postgres@127.0.0.1:{port}/postgres"
    with psycopg.connect(url, autocommit=True) as connection:
        password = SECRETS["postgres_password"]
        connection.execute(f"CREATE ROLE agentsite LOGIN PASSWORD '{password}'")
        connection.execute("CREATE DATABASE agentsite OWNER agentsite")
        rules = folder / "pg_hba.conf"
        line = "host all agentsite 127.0.0.1/32 scram-sha-256\n"
        rules.write_text(line + rules.read_text())
        connection.execute("SELECT pg_reload_conf()")


def answers(port: int) -> bool:
    try:
        password = SECRETS["redis_password"]
        with redis.Redis(port=port, password=password) as client:
            return bool(client.ping())
    except redis.ConnectionError:
        return False


def copy_code(folder: Path) -> None:
    """Copy what the image contains, secrets as root's files, and a tool module."""
    (folder / "code").mkdir()
    for name in CODE:
        source, target = ROOT / name, folder / "code" / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, target, ignore=ignored)
        else:
            shutil.copy(source, target)
    files = {f"secrets/{name}": text for name, text in SECRETS.items()}
    for name, text in (files | {"modules/my_tools.py": MODULE}).items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{text}\n")
        path.chmod(0o444)
    for path in (folder / "code").rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)


@pytest.mark.parametrize(
    ("name", "webs", "workers"),
    [("compose", 2, 2), ("kubernetes", 1, 1), ("systemd", 1, 1)],
)
def test_a_deployment_starts_works_and_drains(machine: Machine, name, webs, workers):
    deployment = READERS[name]({})
    migrate = machine.adapt(deployment, deployment.migrate, port=0)
    done = machine.run(migrate)
    assert done.returncode == 0, done.stderr
    assert "/login/" not in done.stdout + done.stderr

    sites, ports = [], [free_port() for _ in range(webs)]
    for port in ports:
        process = machine.adapt(deployment, deployment.web, port=port)
        sites.append((process, machine.start(process)))
    hands = []
    for _ in range(workers):
        process = machine.adapt(deployment, deployment.worker, port=0)
        if name == "systemd":
            listen_as_systemd(machine, process)
        hands.append((process, machine.start(process)))
    for (process, _), port in zip(sites, ports, strict=True):
        wait(machine, process, port=port)
    for process, _ in hands:
        wait(machine, process)
    wait_until(lambda: is_complete(ports[0], workers), message=machine.logs)

    token = machine.run(
        migrate, "python", "manage.py", "create_token", "admin"
    ).stdout.split()[-1]
    runs = [start_run(port, token) for port in ports * 2]
    stopped = hands[0][1]
    stopped.send_signal(signal.SIGTERM)
    assert stopped.wait(90) == 0
    if workers == 1:
        machine.start(machine.adapt(deployment, deployment.worker, port=0))
    for run in runs:
        wait_until(
            lambda run=run: is_over(ports[-1], token, run),
            seconds=120,
            message=machine.logs,
        )
        assert read_run(ports[-1], token, run)["status"] == "succeeded"

    if workers == 2:
        frozen_process, frozen = hands[1]
        assert machine.is_healthy(frozen_process, port=0)
        frozen.send_signal(signal.SIGSTOP)
        wait_until(
            lambda: not machine.is_healthy(frozen_process, port=0),
            seconds=6 * HANG_SECONDS,
        )
    process, web = sites[0]
    web.send_signal(signal.SIGTERM)
    assert web.wait(90) is not None
    assert not machine.is_healthy(process, port=ports[0])
    assert list((machine.folder / "code").rglob("__pycache__")) == []
    assert not any(secret in machine.logs() for secret in SECRETS.values())


def wait(machine: Machine, process: Process, *, port: int = 0) -> None:
    wait_until(
        lambda: machine.is_healthy(process, port=port),
        seconds=120,
        message=machine.logs,
    )


def listen_as_systemd(machine: Machine, process: Process) -> None:
    """Receive the first notification of a unit, and leave a file when it came."""
    path = process.environment["NOTIFY_SOCKET"]
    systemd = machine.stack.enter_context(
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    )
    systemd.bind(path)
    os.chmod(path, 0o777)

    def receive() -> None:
        if systemd.recv(100) == b"WATCHDOG=1":
            Path(path).with_name("notified").touch()

    threading.Thread(target=receive, daemon=True).start()


def is_complete(port: int, workers: int) -> bool:
    """Whether a site is healthy, with so many workers."""
    address = f"http://127.0.0.1:{port}/healthz"
    with suppress(OSError), urllib.request.urlopen(address, timeout=60) as answer:
        found = json.load(answer)
        return found["status"] == "ok" and len(found["workers"]) == workers
    return False


def start_run(port: int, token: str) -> int:
    body = {"agent": "travel-planner", "inputs": {"input": "Plan a day in Oslo."}}
    return int(call(port, token, "", json.dumps(body).encode())["id"])


def read_run(port: int, token: str, run: int) -> dict[str, object]:
    return call(port, token, f"/{run}?steps=none", None)


def is_over(port: int, token: str, run: int) -> bool:
    """Whether a run has ended; False while the site does not say."""
    with suppress(OSError):
        return bool(read_run(port, token, run)["is_over"])
    return False


def call(port: int, token: str, path: str, body: bytes | None) -> dict[str, object]:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/api/v1/runs{path}",
        data=body,
        headers={"Authorization": f"Bearer {token}"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return dict(json.load(answer))


def test_every_way_starts_the_same_commands():
    compose, *others = (READERS[name]({}) for name in READERS)

    for other in others:
        shared = other.migrate.command[: len(compose.migrate.command)]
        assert shared == compose.migrate.command
        assert sorted(other.worker.command) == sorted(compose.worker.command)
        for word in compose.web.command[:4] + compose.web.command[-4:]:
            assert word in other.web.command


def test_no_container_of_the_site_can_write_or_gain_rights():
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]

    for name in ("migrate", "web", "worker", "caddy", "valkey"):
        assert services[name]["read_only"] is True
    for service in services.values():
        assert service["cap_drop"] == ["ALL"]
        assert "no-new-privileges:true" in service["security_opt"]
        assert service["logging"]["options"]["max-size"]


def test_kubernetes_accepts_the_manifests_without_a_cluster():
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("install kubectl")
    done = subprocess.run(
        [kubectl, "kustomize", FOLDER / "kubernetes"], capture_output=True, check=True
    )

    pods = [
        each["spec"]["template"]["spec"]
        for each in yaml.safe_load_all(done.stdout)
        if each["kind"] in {"Deployment", "Job"}
    ]
    assert len(pods) == 3
    for pod in pods:
        assert pod["securityContext"]["runAsNonRoot"] is True
        for box in [*pod["containers"], *pod.get("initContainers", [])]:
            assert box["securityContext"]["readOnlyRootFilesystem"] is True
            assert box["image"].startswith("registry.example.org/agentsite:")
