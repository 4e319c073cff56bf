"""The form that imports an OpenAPI document: give it, then choose operations."""

from typing import Any

from django import forms

from tools.models import Credential
from tools.openapi.document import (
    MAX_BYTES,
    Document,
    DocumentRefused,
    TooLarge,
    read_document,
)
from tools.openapi.operations import Operation, operations_of


class OpenApiForm(forms.Form):
    """A document as text or file."""

    document = forms.CharField(
        required=False,
        strip=False,
        widget=forms.Textarea(
            attrs={"rows": 12, "class": "mono", "spellcheck": "false"}
        ),
        help_text="OpenAPI 3.0 or 3.1, as JSON or YAML.",
    )
    file = forms.FileField(required=False, label="Or a file")
    base = forms.URLField(
        label="Server",
        required=False,
        assume_scheme="https",
        help_text="Its address, where the document does not name it in full, or "
        "names another one than yours.",
    )
    credential = forms.ModelChoiceField(
        queryset=Credential.objects.none(),
        required=False,
        empty_label="none",
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
        text = cleaned.get("document") or ""
        try:
            if uploaded := cleaned.get("file"):
                if uploaded.size > MAX_BYTES:
                    raise TooLarge
                text = uploaded.read().decode("utf-8-sig", "replace")
            if text.strip():
                cleaned["read"] = read_document(text)
                cleaned["text"] = text
            else:
                self.add_error("document", "Paste a document or choose a file.")
        except DocumentRefused as refused:
            self.add_error("file" if cleaned.get("file") else "document", str(refused))
        return cleaned

    @property
    def read(self) -> Document:
        """The document of a valid form."""
        document: Document = self.cleaned_data["read"]
        return document

    def operations(self) -> list[Operation]:
        """Return what can be chosen."""
        return operations_of(self.read, base=self.cleaned_data["base"])
