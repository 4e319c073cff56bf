"""A fingerprint of what was sent to a model, stored instead of the messages."""

import json
from hashlib import sha256
from typing import NamedTuple

from runs.engine.types import ModelRequest


def digest_of(request: ModelRequest) -> str:
    """Return SHA-256, in hex, over the SHA-256 of each message, settings and tools."""
    total = request.hash_of_messages()
    total.update(_digest_of_rest(request))
    return str(total.hexdigest())


def _digest_of_rest(request: ModelRequest) -> bytes:
    """Return the digest of settings and tools, which is the same for a whole run."""
    same = (request.settings, request.tools, request.stop, request.output_schema)
    key = tuple(map(id, same))
    known = _RESTS.get(key)
    if known is not None:
        return known.digest
    if len(_RESTS) >= _MOST_RESTS:
        _RESTS.clear()
    rest = _Rest(same, sha256(_rest_of(request)).digest())
    _RESTS[key] = rest
    return rest.digest


class _Rest(NamedTuple):
    same: tuple[object, ...]
    """Kept alive, so that no other object gets its place and thereby its id."""
    digest: bytes


_RESTS: dict[tuple[int, ...], _Rest] = {}
_MOST_RESTS = 512


def _rest_of(request: ModelRequest) -> bytes:
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
