"""Files as arguments of function tools."""

from typing import Annotated

import pytest
from pydantic import Field

from tools.errors import ToolFailed
from tools.registry import ToolContext
from tools.schema.base64_bytes import BASE64_SCHEMA
from tools.schema.signature import NotATool, get_function_arguments


def arguments_of(function):
    return get_function_arguments(function, context=ToolContext)


def test_bytes_are_sent_as_base64():
    def count(data: bytes, other: bytes | None = None, name: bytes = b"\xff") -> int:
        """Count.

        Args:
            data: The file.
        """
        return len(data)

    arguments = arguments_of(count)

    properties = arguments.schema["properties"]
    assert properties["data"] == BASE64_SCHEMA | {"description": "The file."}
    assert properties["other"]["anyOf"] == [BASE64_SCHEMA, {"type": "null"}]
    assert properties["name"]["default"] == "/w=="
    assert arguments.convert({"data": "aGk=", "other": "/w=="}) == {
        "data": b"hi",
        "other": b"\xff",
    }


def test_limits_of_bytes_are_kept():
    def count(data: Annotated[bytes, Field(max_length=2)]) -> int:
        """Count."""
        return len(data)

    arguments = arguments_of(count)

    assert arguments.convert("aG\nk=") == {"data": b"hi"}
    with pytest.raises(ToolFailed, match="at most 2"):
        arguments.convert({"data": "aGkh"})


@pytest.mark.parametrize("text", ["no Base64", "aGk", "é", "aG-_"])
def test_other_texts_are_refused(text):
    def count(data: bytes) -> int:
        """Count."""
        return len(data)

    with pytest.raises(ToolFailed, match="data: must be Base64"):
        arguments_of(count).convert({"data": text})


def test_bytes_within_another_type_are_refused_with_advice():
    def count(files: list[bytes]) -> int:
        """Count."""
        return len(files)

    with pytest.raises(NotATool, match="take each file as a parameter of its own"):
        arguments_of(count)
