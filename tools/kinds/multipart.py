"""Bodies of the type multipart/form-data, with files made from arguments."""

import binascii
import json
import mimetypes
from base64 import b64decode
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import httpx
from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict, Discriminator, Tag, field_validator

from tools.errors import ToolFailed
from tools.kinds.parameter_styles import write_parameter
from tools.kinds.placeholders import PLACEHOLDER, fill_text_template, format_scalar

Part = tuple[str | None, bytes, str | None]
"""File name, content and type; a field has no file name."""


class InvalidFileArgument(ToolFailed):
    """An argument does not have the content of a file."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"The file {name!r} cannot be sent: {why}.")


class FilePart(BaseModel):
    """A file whose content is an argument.

    The argument is text, or an object such as `{"filename": "a.csv", "text": "…"}` or
    `{"filename": "a.png", "base64": "…"}`; a list of them is sent as several files.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    content: str
    """One placeholder."""
    encoding: Literal["text", "base64"] = "text"
    """Of an argument that is text."""
    filename: str = ""
    """With placeholders; the name of the field if empty."""
    content_type: str = ""
    """Derived from the file name if empty."""

    @field_validator("content")
    @classmethod
    def check_content(cls, content: str) -> str:
        if not PLACEHOLDER.fullmatch(content):
            raise ValueError(_("the content of a file is one placeholder"))
        return content

    @field_validator("filename", "content_type")
    @classmethod
    def check_attribute(cls, text: str) -> str:
        if ";" in text or not (text.isprintable() or not text):
            raise ValueError(
                _("the name and type of a file have no semicolons or line breaks")
            )
        return text

    @field_validator("content_type")
    @classmethod
    def check_content_type(cls, text: str) -> str:
        if not text.isascii():
            raise ValueError(_("the type of a file has ASCII characters only"))
        return text


def get_part_tag(part: Any) -> str:
    """Distinguish a file from a field, so that an error is about one of them."""
    return "field" if isinstance(part, str) else "file"


MultipartPart = Annotated[
    Annotated[str, Tag("field")] | Annotated[FilePart, Tag("file")],
    Discriminator(get_part_tag),
]
"""A field as text with placeholders, or a file."""


def build_multipart_body(
    templates: dict[str, str | FilePart],
    arguments: dict[str, Any],
    *,
    styles: Mapping[str, str],
) -> tuple[bytes | None, str]:
    """Return the body and its type; None if all fields are absent.

    Raise `InvalidFileArgument`.
    """
    parts: list[tuple[str, Part]] = []
    for name, template in templates.items():
        value = fill_text_template(
            template.content if isinstance(template, FilePart) else template, arguments
        )
        if name in styles and not isinstance(template, FilePart):
            parts += [
                (key, _build_field(text))
                for key, text in write_parameter(name, value, styles[name])
            ]
            continue
        for one in value if isinstance(value, list) else [value]:
            if one is None:
                continue
            if isinstance(template, FilePart):
                parts.append((name, _build_file(name, template, one, arguments)))
            else:
                parts.append((name, _build_field(one)))
    if not parts:
        return None, ""
    request = httpx.Request("POST", "http://body", files=parts)
    return request.read(), request.headers["content-type"]


def _build_field(value: Any) -> Part:
    is_json = isinstance(value, dict | list)
    content = format_scalar(value).encode()
    return None, content, "application/json" if is_json else None


def _build_file(
    field: str, part: FilePart, value: Any, arguments: dict[str, Any]
) -> Part:
    given = value if isinstance(value, dict) else {part.encoding: value}
    filename = given.get("filename") or fill_text_template(part.filename, arguments)
    filename = format_scalar(filename) if filename else field
    content_type = part.content_type or mimetypes.guess_type(filename)[0]
    if isinstance(given.get("text"), str) and given.get("base64") is None:
        content = format_scalar(given["text"]).encode()
        content_type = content_type or "text/plain; charset=utf-8"
    elif isinstance(given.get("base64"), str) and given.get("text") is None:
        content = decode_file_argument(field, given["base64"])
    else:
        raise InvalidFileArgument(
            field, f"enter its content as text or base64, not {json.dumps(value)[:80]}"
        )
    return filename, content, content_type or "application/octet-stream"


def decode_file_argument(field: str, text: str) -> bytes:
    """Return the bytes; line breaks and the beginning of a data URL are skipped."""
    if text.startswith("data:"):
        text = text.partition(",")[2]
    try:
        return b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidFileArgument(field, f"it is not Base64 ({error})") from None
