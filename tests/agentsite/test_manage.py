"""Management commands on an installation that is not there yet."""

import subprocess
import sys

from agentsite.supervise import ROOT
from tests.faults.site import environment


def test_a_database_without_tables_is_one_sentence(tmp_path):
    ended = subprocess.run(
        [sys.executable, "manage.py", "create_token", "admin"],
        cwd=ROOT,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
    )

    (sentence,) = ended.stderr.splitlines()
    assert sentence.startswith("The database is not prepared (no such table: ")
    assert ended.returncode == 1
