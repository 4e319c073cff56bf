"""A text column whose sentences pages translate."""

from typing import TYPE_CHECKING, Any

from django.db import models

from tools.text.translatable import decode_stored_text, encode_stored_text

if TYPE_CHECKING:
    _TextField = models.TextField[str, str]
else:
    _TextField = models.TextField


class TranslatableTextField(_TextField):
    """Keeps the parts of a `TranslatableText` beside its English sentence.

    The column is that of a plain `TextField`, and migrations name it so.
    """

    def deconstruct(self) -> tuple[str, str, Any, Any]:
        name, _path, args, kwargs = super().deconstruct()
        return name, "django.db.models.TextField", args, kwargs

    def from_db_value(self, value: str | None, *_args: object) -> str | None:
        return None if value is None else decode_stored_text(value)

    def get_prep_value(self, value: Any) -> Any:
        prepared = super().get_prep_value(value)
        return encode_stored_text(prepared) if isinstance(prepared, str) else prepared
