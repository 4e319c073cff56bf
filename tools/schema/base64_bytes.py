"""Bytes as arguments: models send them as Base64, the pages as files."""

import base64
import types
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BeforeValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

BASE64_SCHEMA = {"type": "string", "contentEncoding": "base64"}


def decode_base64(value: Any) -> Any:
    """Return the bytes of a text; what already is bytes, as a default, stays."""
    if not isinstance(value, str):
        return value
    try:
        return base64.b64decode("".join(value.splitlines()), validate=True)
    except ValueError:
        raise PydanticCustomError("base64", "must be Base64") from None


def encode_base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


Base64Bytes = Annotated[
    bytes, BeforeValidator(decode_base64), WithJsonSchema(BASE64_SCHEMA)
]


def accept_base64(kind: Any) -> Any:
    """Return `kind` with `bytes`, also as one of several types, sent as Base64."""
    if kind is bytes:
        return Base64Bytes
    origin = get_origin(kind)
    if origin is Annotated:
        inner, *marks = get_args(kind)
        return Annotated[accept_base64(inner), *marks]
    if origin in (Union, types.UnionType):
        return Union[tuple(accept_base64(one) for one in get_args(kind))]  # noqa: UP007  # the members are known at run time
    return kind


def is_base64(part: dict[str, Any]) -> bool:
    return part.get("contentEncoding") == "base64" and part.get("type") == "string"
