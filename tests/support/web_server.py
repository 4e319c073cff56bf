"""A real web server on the test's own database."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings

from tests.support.servers import free_port, is_answering
from tests.support.timing import wait_until


@contextmanager
def served(**variables: str) -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
    """Serve the test's database with a real uvicorn."""
    port = free_port()
    name = settings.DATABASES["default"]["NAME"]
    environment = dict(os.environ, AGENTSITE_DATA=str(settings.DATA_DIR))
    environment["DJANGO_SETTINGS_MODULE"] = "agentsite.settings"
    if settings.EMBEDDED:
        environment["DATABASE_URL"] = f"sqlite:///{name}"
        environment["REDIS_URL"] = settings.REDIS_URL
    else:
        url = os.environ["DATABASE_URL"]
        environment["DATABASE_URL"] = url.rpartition("/")[0] + f"/{name}"
    environment["PORT"] = "8000"  # the session cookie is named after it
    environment |= variables
    server = subprocess.Popen(
        [sys.executable, "-m", "uvicorn", "agentsite.asgi:application"]
        + ["--port", str(port), "--log-level", "warning"]
        + ["--timeout-graceful-shutdown", "10"],
        env=environment,
    )
    try:
        url = f"http://127.0.0.1:{port}"
        wait_until(lambda: is_answering(f"{url}/sign-in/"), seconds=180)
        yield url, server
    finally:
        server.kill()
        server.wait()
