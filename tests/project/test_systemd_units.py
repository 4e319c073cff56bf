"""The units for systemd, and what the documentation says about them."""

import re

import pytest

from tests.faults.installation.deployments import FOLDER, ROOT, read_assignments

UNITS = FOLDER / "systemd"


def read_section(unit: str, section: str) -> list[tuple[str, str]]:
    _, _, rest = (UNITS / unit).read_text().partition(f"[{section}]\n")
    return read_assignments(rest.partition("\n[")[0])


@pytest.mark.parametrize(
    "name", ["agentsite-web@.service", "agentsite-worker@.service"]
)
def test_another_instance_can_be_enabled(name):
    assert read_section(name, "Install") == [("WantedBy", "agentsite.target")]


def test_every_service_is_started_again_after_a_failure():
    policies = {
        path.name: dict(read_section(path.name, "Service"))["Restart"]
        for path in UNITS.glob("*.service")
    }

    assert policies == {
        "agentsite-migrate.service": "on-failure",
        "agentsite-web@.service": "always",
        "agentsite-worker@.service": "always",
    }


def test_the_migration_waits_for_the_database():
    service = dict(read_section("agentsite-migrate.service", "Service"))

    assert service["ExecStart"].endswith(" --wait 600")
    assert service["TimeoutStartSec"] == "infinity"
    assert service["RestartMode"] == "direct"


def test_the_command_of_the_documentation_has_the_secrets_of_the_units():
    page = (ROOT / "docs/deployment.md").read_text()
    command = page.partition("    systemd-run ")[2].partition("\n\n")[0]
    service = read_section("agentsite-web@.service", "Service")
    credentials = {value for key, value in service if key == "LoadCredential"}
    variables = {
        word.replace("%d/", "$CREDENTIALS_DIRECTORY/").replace("%S/", "/var/lib/")
        for key, line in service
        if key == "Environment"
        for word in line.split()
        if "%" in word
    }

    assert set(re.findall(r"LoadCredential=(\S+)", command)) == credentials
    exported = re.search(r"export ([^;]+);", command)
    assert exported
    assert set(exported[1].split()) == variables
