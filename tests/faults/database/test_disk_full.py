"""A full disk under SQLite: health checks say so, and recover with the disk."""

from pathlib import Path

import pytest

from tests.faults.site import run_python
from tests.support.empty_database import copy_empty_sqlite

pytestmark = pytest.mark.faults

CHECK_WITH_FULL_DISK = """
import resource

import django
django.setup()
from django.test import Client
from runs.services.health import status

status.MAX_AGE_SECONDS = -1.0

def check():
    client = Client(SERVER_NAME="localhost")
    return [client.get(path).status_code for path in ("/healthz", "/readyz")]

print(check())
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
print(check())
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
print(check())
"""


def test_a_database_that_cannot_grow_is_reported(tmp_path: Path):
    copy_empty_sqlite(tmp_path / "data")

    done = run_python(tmp_path / "data", CHECK_WITH_FULL_DISK)

    assert done.stdout.split("\n")[:3] == ["[200, 200]", "[503, 503]", "[200, 200]"]
