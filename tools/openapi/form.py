"""The form that imports an OpenAPI document: give it, then choose operations."""

from typing import Any

from django import forms
from django.core import signing

from tools.models import Credential
from tools.openapi.document import (
    MAX_BYTES,
    Document,
    DocumentRefused,
    TooLarge,
    Unreadable,
    read_document,
)
from tools.openapi.operations import Operation, operations_of

SALT = "tools.openapi"
MAX_PACKED = 2_000_000
"""Characters; Django reads forms of 2.5 MB."""


class NoDocument(DocumentRefused):
    """Nothing was given, or too long ago."""

    def __init__(self) -> None:
        super().__init__("Paste a document or choose a file.")


class OpenApiForm(forms.Form):
    """A document as text or file."""

    document = forms.CharField(
        required=False,
        strip=False,
        widget=forms.Textarea(
            attrs={"rows": 12, "class": "mono", "spellcheck": "false"}
        ),
        help_text="OpenAPI 3.0 or 3.1, as JSON or YAML; more than 2 MB as a file.",
    )
    file = forms.FileField(required=False, label="Or a file")
    base = forms.URLField(
        label="Server",
        required=False,
        assume_scheme="https",
        help_text="Its address, where the document does not name it in full, or "
        "names another one than yours.",
    )
    kept = forms.CharField(required=False, widget=forms.HiddenInput)
    """The document that operations are chosen of."""
    credential = forms.ModelChoiceField(
        queryset=Credential.objects.none(),
        required=False,
        empty_label="None",
        help_text="Sent with each call, to the hosts it is bound to.",
    )

    def __init__(self, *args: Any, user: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        field = self.fields["credential"]
        if isinstance(field, forms.ModelChoiceField):
            field.queryset = Credential.objects.usable_by(user)

    def clean(self) -> dict[str, Any] | None:
        """Read the document; what is wrong with it is said at its field."""
        cleaned = super().clean() or {}
        try:
            cleaned["read"] = self.given(cleaned)
            cleaned["kept"] = cleaned.get("kept") or packed(cleaned["read"])
        except DocumentRefused as refused:
            self.add_error("file" if cleaned.get("file") else "document", str(refused))
        return cleaned

    def given(self, cleaned: dict[str, Any]) -> Document:
        """Return the document that was uploaded, pasted or kept by the page."""
        if kept := cleaned.get("kept"):
            return unpacked(kept)
        text = cleaned.get("document") or ""
        if uploaded := cleaned.get("file"):
            if uploaded.size > MAX_BYTES:
                raise TooLarge
            text = uploaded.read().decode("utf-8-sig", "replace")
        if not text.strip():
            raise NoDocument
        return read_document(text)

    @property
    def read(self) -> Document:
        """The document of a valid form."""
        document: Document = self.cleaned_data["read"]
        return document

    def operations(self) -> list[Operation]:
        """Return what can be chosen."""
        return operations_of(self.read, base=self.cleaned_data["base"])


def packed(document: Document) -> str:
    """Return the document as a text that only we can have written, a tenth as long.

    It travels with the page that shows the operations, so that nothing is stored.
    """
    try:
        text = signing.dumps(document.body, salt=SALT, compress=True)
    except RecursionError:
        raise Unreadable("it is nested too deeply") from None
    if len(text) > MAX_PACKED:
        raise TooLarge
    return text


def unpacked(text: str) -> Document:
    """Return what was `packed` today."""
    try:
        return Document(signing.loads(text, salt=SALT, max_age=86_400))
    except signing.BadSignature:
        raise NoDocument from None
