"""Which environment variables a provider may take its key from.

The environment of a worker also holds secrets that are no provider's, and a provider
sends its key to an address that its owner chose. So two things must hold:

- the provider's owner is a superuser, who may know the operator's keys;
- the name is a kind's usual one, is listed in `AGENTSITE_KEY_VARIABLES`, or is or ends
  in `KEY` or `TOKEN` as a word of its own (`LOCAL_KEY`). Agentsite's own variables are
  never read, listed or not.
"""

import re
from collections.abc import Collection

from runs.llm.registry import KINDS

OWN = re.compile(r"(?i)AGENTSITE_.*|SECRET_KEY|DATABASE_URL|REDIS_URL|POSTGRES_.*")
KEY_LIKE = re.compile(r"(.*_)?(KEY|TOKEN)")
USUAL = {kind.env_key for kind in KINDS.values() if kind.env_key}


def may_hold_key(name: str, *, listed: Collection[str]) -> bool:
    """Whether the variable `name` may be sent to a provider as its key."""
    if OWN.fullmatch(name):
        return False
    return name in USUAL or name in listed or KEY_LIKE.fullmatch(name) is not None


def is_usual_place(kind: str, *, base_url: str, name: str) -> bool:
    """Whether `name` is the usual variable of `kind`, for the kind's own service."""
    usual = KINDS.get(kind)
    return usual is not None and (base_url, name) == (usual.base_url, usual.env_key)
