"""Error messages for people who use a provider that they may not see.

Whoever runs a shared agent uses its provider; the provider's name and address, and what
else is in its network, are not shown to them.
"""

import re
from urllib.parse import urlsplit

from runs.models import Provider, Run
from tools.text.translatable import change_text

HIDDEN_ADDRESS = "[hidden]"
ADDRESS = re.compile(
    r"https?://[^\s'\"]*[^\s'\".,;:]|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b"
)


def may_see_provider(run: Run, provider: Provider) -> bool:
    """Whether the run's owner may; one's own provider needs no query."""
    if provider.owner_id == run.owner_id:
        return True
    return Provider.objects.visible_to(run.owner).filter(pk=provider.pk).exists()


def mask_provider_address(text: str, provider: Provider) -> str:
    """Return `text` without the provider's slug, and without addresses."""
    return change_text(text, lambda part: _mask_plain_text(part, provider))


def _mask_plain_text(text: str, provider: Provider) -> str:
    text = ADDRESS.sub(HIDDEN_ADDRESS, text)
    try:
        parts = urlsplit(provider.base_url)
        names = {parts.netloc, parts.hostname or ""}
    except ValueError:
        names = set()
    for name in sorted(filter(None, names), key=len, reverse=True):
        text = re.sub(re.escape(name), HIDDEN_ADDRESS, text, flags=re.IGNORECASE)
    return text.replace(repr(provider.slug), HIDDEN_ADDRESS)
