"""Which environment variables a provider may take its key from.

A worker's environment also contains other secrets, and a provider sends its key to an
address that its owner chose. So both must hold:

- the provider's owner is a superuser, who may know the operator's keys;
- the name is the default of a kind, is listed in `AGENTSITE_KEY_VARIABLES`, or ends in
  the word `KEY` or `TOKEN` (`LOCAL_KEY`). Agentsite's own variables are never read.
"""

import logging
import os
import re
from collections.abc import Collection
from pathlib import Path

from runs.llm.registry import PROVIDER_KINDS

logger = logging.getLogger(__name__)

OWN_VARIABLES = re.compile(
    r"(?i)AGENTSITE_.*|SECRET_KEY|DATABASE_.*|REDIS_.*|POSTGRES_.*"
)
KEY_LIKE = re.compile(r"(.*_)?(KEY|TOKEN)")


def may_hold_key(name: str, *, listed: Collection[str]) -> bool:
    """Whether the variable `name` may be sent to a provider as its key."""
    if not name or OWN_VARIABLES.fullmatch(name):
        return False
    return (
        name in (kind.env_key for kind in PROVIDER_KINDS.values())
        or name in listed
        or KEY_LIKE.fullmatch(name) is not None
    )


def read_key_variable(name: str) -> str:
    """Return the value of the variable, or of the file that `NAME_FILE` names.

    The file is read each time, so a rotated key needs no restart.
    """
    path = os.environ.get(f"{name}_FILE")
    if os.environ.get(name) or not path:
        return os.environ.get(name, "")
    try:
        return Path(path).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        logger.error("the file of %s_FILE cannot be read: %s", name, error)
        return ""


def is_default_key_variable(kind: str, *, base_url: str, name: str) -> bool:
    """Whether `name` is the default variable of `kind`, for the kind's own service."""
    usual = PROVIDER_KINDS.get(kind)
    return usual is not None and (base_url, name) == (usual.base_url, usual.env_key)
