"""`make audit` compares the locked packages with a database of vulnerabilities."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.servers import find_server_program
from tests.tools.http_server import Answer, Got, serve

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def audit(database: str, lock: Path) -> "subprocess.CompletedProcess[str]":
    """Run the program of `make audit` on one lock file."""
    return subprocess.run(
        [
            find_server_program("pip-audit"),
            *("-s", "osv", "--osv-url", database, "--disable-pip"),
            *("--progress-spinner", "off", "-r", str(lock)),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("is_known", [False, True])
def test_a_locked_package_with_a_known_vulnerability_is_reported(tmp_path, is_known):
    lock = tmp_path / "requirements.lock"
    text = (ROOT / "requirements.lock").read_text()
    lock.write_text(text[text.index("django==") : text.index("django-axes==")])
    asked: list[str] = []

    def answer(got: Got) -> Answer:
        package = {"ecosystem": "PyPI", **json.loads(got.body)["package"]}
        asked.append(package["name"])
        if not is_known or package["name"] != "django":
            return Answer({})
        fixed = {"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "99"}]}
        affected = [{"package": package, "ranges": [fixed]}]
        one = {"id": "PYSEC-1", "summary": "A made-up flaw.", "affected": affected}
        return Answer({"vulns": [one]})

    with serve(answer) as server:
        done = audit(server.url, lock)

    assert "django" in asked
    assert ("PYSEC-1" in done.stdout) is is_known
    assert done.returncode == int(is_known)
