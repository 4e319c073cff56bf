"""The form field for the parts of a multipart body."""

from typing import Any

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from tools.forms.fields import PairsField

ATTRIBUTES = {"encoding": "encoding", "filename": "filename", "type": "content_type"}
"""As they are written, and in the stored part."""


class MultipartField(PairsField):
    """Fields and files, one per line, written as for `curl --form`.

    `note={note}` is a field, `photo=@{photo};encoding=base64;type=image/png` a file.
    Text that begins with @ or a backslash has a backslash before it.
    """

    def __init__(self, **more: Any) -> None:
        super().__init__(separator="=", **more)

    def prepare_value(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return super().prepare_value(
            {k: format_multipart_part(v) for k, v in value.items()}
        )

    def to_python(self, value: Any) -> Any:
        return {
            name: parse_part(text) for name, text in super().to_python(value).items()
        }


def format_multipart_part(part: Any) -> str:
    if not isinstance(part, dict):
        text = str(part)
        return f"\\{text}" if text.startswith(("@", "\\")) else text
    attributes = [
        f";{written}={part[stored]}"
        for written, stored in ATTRIBUTES.items()
        if part.get(stored)
    ]
    return f"@{part.get('content', '')}{''.join(attributes)}"


def parse_part(text: str) -> str | dict[str, str]:
    """Return a part as it is stored; raise `ValidationError`."""
    if not text.startswith("@"):
        return text[1:] if text.startswith("\\") else text
    content, *attributes = text[1:].split(";")
    part = {"content": content.strip()}
    for attribute in attributes:
        written, _equals, value = attribute.partition("=")
        stored = ATTRIBUTES.get(written.strip())
        if stored is None or not value.strip():
            raise ValidationError(
                _(
                    "“%(attribute)s” is not known. A file can have encoding=base64, "
                    "filename=… and type=…."
                )
                % {"attribute": attribute.strip()}
            )
        part[stored] = value.strip()
    return part
