"""What `manage.py check --deploy` reports about this site's own settings."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Tags, Warning, register


@register(Tags.security, deploy=True)
def check_private_hosts(**_options: Any) -> list[CheckMessage]:
    """Report private addresses that every user can call."""
    if not settings.PRIVATE_HOSTS:
        return []
    if settings.IS_LOCAL:
        return [
            Warning(
                "Providers of all users can reach servers on this machine, because "
                "only this machine seems to reach Agentsite.",
                hint="If there is a reverse proxy, set AGENTSITE_URL to the public "
                "address: then none are allowed by default.",
                id="agentsite.W001",
            )
        ]
    return [
        Warning(
            f"All users can reach these private addresses: {settings.PRIVATE_HOSTS}.",
            hint="Remove the ones that are not needed from AGENTSITE_PRIVATE_HOSTS.",
            id="agentsite.W002",
        )
    ]
