"""Secrets that somebody typed into a tool: no agent file contains them."""

from typing import Any, NamedTuple

from runs.services.agentfile.schema import ToolEntry
from runs.services.runs.mask_secrets import SECRET_PATTERNS
from tools.audit.masking import PLACEHOLDER, SECRET_MASK, SECRET_NAME, mask_text

VALUE_FIELDS = ("url", "headers", "query", "json", "form", "multipart", "code")
"""Fields of a configuration in which values are typed."""
SCHEMES = {"", "basic", "bearer", "token"}
"""What may stand beside a placeholder in a header."""


class RemovedSecrets(NamedTuple):
    entry: ToolEntry
    places: tuple[str, ...]
    """Where the entry had secrets, as `tools.orders.config.headers.X-Api-Key`."""


def remove_literal_secrets(entry: ToolEntry) -> RemovedSecrets:
    """Return the entry of a tool with a mask instead of each secret in its values."""
    places: list[str] = []
    path = f"tools.{entry.slug}.config"
    config = {
        name: _remove_secrets(value, name, f"{path}.{name}", places)
        if name in VALUE_FIELDS
        else value
        for name, value in entry.config.items()
    }
    if not places:
        return RemovedSecrets(entry, ())
    return RemovedSecrets(entry.model_copy(update={"config": config}), tuple(places))


def find_removed_secrets(config: dict[str, Any]) -> list[str]:
    """Return the places in the configuration of a tool that have a mask."""
    places: list[str] = []
    for name in VALUE_FIELDS:
        _find_masks(config.get(name), f"config.{name}", places)
    return places


def _remove_secrets(value: Any, name: str, path: str, places: list[str]) -> Any:
    if isinstance(value, dict):
        return {
            key: _remove_secrets(one, str(key), f"{path}.{key}", places)
            for key, one in value.items()
        }
    if isinstance(value, list):
        return [_remove_secrets(one, name, path, places) for one in value]
    if not isinstance(value, str):
        return value
    masked = SECRET_MASK
    if not SECRET_NAME.search(name) or _is_template(value):
        masked = SECRET_PATTERNS.sub(SECRET_MASK, mask_text(value))
    if masked != value:
        places.append(path)
    return masked


def _is_template(value: str) -> bool:
    """Whether a value has placeholders for arguments only."""
    return PLACEHOLDER.sub("", value).strip().lower() in SCHEMES


def _find_masks(value: Any, path: str, places: list[str]) -> None:
    if isinstance(value, dict):
        for key, one in value.items():
            _find_masks(one, f"{path}.{key}", places)
    elif isinstance(value, list):
        for one in value:
            _find_masks(one, path, places)
    elif isinstance(value, str) and SECRET_MASK in value:
        places.append(path)
