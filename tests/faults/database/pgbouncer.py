"""A private PgBouncer in transaction mode, before a private PostgreSQL."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.support.postgres import Postgres, wait_for
from tests.support.servers import free_port

SERVER_CONNECTIONS = 4
"""Fewer than the clients hold open, so that they share them."""

CONFIGURATION = """
[databases]
* = host=127.0.0.1 port={server_port} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {connections}
max_client_conn = 200
"""


def find_pgbouncer() -> str | None:
    return shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")


@contextlib.contextmanager
def pgbouncer(postgres: Postgres) -> Iterator[str]:
    """Run a pooler until the block ends; give the address of the database."""
    program = find_pgbouncer()
    assert program is not None
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="agentsite-pgb-", dir="/tmp") as folder:
        file = Path(folder, "pgbouncer.ini")
        file.write_text(
            CONFIGURATION.format(
                server_port=postgres.port, port=port, connections=SERVER_CONNECTIONS
            )
        )
        os.chmod(folder, 0o755)
        process = subprocess.Popen(
            [program, "--quiet", file], user=postgres.user, cwd=folder
        )
        try:
            wait_for(port)
            yield f"postgresql://postgres@127.0.0.1:{port}/agentsite?pgbouncer=true"
        finally:
            process.kill()
            process.wait()
