"""What `check --deploy` reports."""

import pytest
from django.core import checks

from agentsite.checks import check_private_hosts


@pytest.mark.parametrize(
    ("hosts", "is_local", "codes"),
    [
        ("provider=127.0.0.1", True, ["agentsite.W001"]),
        ("tool=10.0.0.5:80", False, ["agentsite.W002"]),
        ("", True, []),
        ("", False, []),
    ],
)
def test_private_addresses_that_users_can_reach_are_reported(
    settings, hosts, is_local, codes
):
    settings.PRIVATE_HOSTS, settings.IS_LOCAL = hosts, is_local

    assert [message.id for message in check_private_hosts()] == codes


def test_the_check_belongs_to_the_deployment():
    assert check_private_hosts in checks.registry.registry.get_checks(True)
