"""A fingerprint of what was sent to a model, stored instead of the messages."""

import json
from hashlib import sha256
from typing import NamedTuple

from runs.engine.types import ModelRequest


def digest_request(request: ModelRequest) -> str:
    """Return SHA-256, in hex, over the SHA-256 of each message, settings and tools."""
    total = request.hash_messages()
    total.update(_digest_static_part(request))
    return str(total.hexdigest())


def _digest_static_part(request: ModelRequest) -> bytes:
    """Return the digest of settings and tools, which never change during a run."""
    same = (request.settings, request.tools, request.stop, request.output_schema)
    key = tuple(map(id, same))
    known = _STATIC_PARTS.get(key)
    if known is not None:
        return known.digest
    if len(_STATIC_PARTS) >= _MAX_STATIC_PARTS:
        _STATIC_PARTS.clear()
    rest = _StaticPart(same, sha256(_serialize_static_part(request)).digest())
    _STATIC_PARTS[key] = rest
    return rest.digest


class _StaticPart(NamedTuple):
    same: tuple[object, ...]
    """Kept alive, so that no other object can get its id."""
    digest: bytes


_STATIC_PARTS: dict[tuple[int, ...], _StaticPart] = {}
_MAX_STATIC_PARTS = 512


def _serialize_static_part(request: ModelRequest) -> bytes:
    shape = {
        "settings": request.settings.model_dump(mode="json"),
        "tools": [
            [tool.name, tool.description, tool.args_schema] for tool in request.tools
        ],
        "stop": request.stop,
        "output_schema": request.output_schema,
    }
    text = json.dumps(shape, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.encode("utf-8", "replace")
