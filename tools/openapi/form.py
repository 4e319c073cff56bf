"""The form that imports an OpenAPI document: submit it, then select operations."""

from typing import Any

from django import forms
from django.core import signing
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from tools.models import Credential
from tools.openapi.document import (
    MAX_BYTES,
    DocumentRefused,
    DocumentTooLarge,
    DocumentUnreadable,
    OpenApiDocument,
    parse_openapi_document,
)
from tools.openapi.operations import Operation, list_operations

SALT = "tools.openapi"
MAX_PACKED = 2_000_000
"""Characters; Django reads forms of 2.5 MB."""


class DocumentMissing(DocumentRefused):
    """Nothing was submitted, or the page is too old."""

    def __init__(self) -> None:
        super().__init__(gettext("Paste a document or select a file."))


class OpenApiForm(forms.Form):
    """A document as text or file."""

    document = forms.CharField(
        label=_("Document"),
        required=False,
        strip=False,
        widget=forms.Textarea(
            attrs={"rows": 12, "class": "mono", "spellcheck": "false"}
        ),
        help_text=_(
            "OpenAPI 3.0, 3.1 or Swagger 2.0 as JSON or YAML. Upload documents over "
            "2 MB as a file."
        ),
    )
    file = forms.FileField(required=False, label=_("Document file"))
    base = forms.URLField(
        label=_("Server URL"),
        required=False,
        assume_scheme="https",
        help_text=_(
            "Enter it if the document has no full server URL, or the URL of another "
            "server."
        ),
    )
    kept = forms.CharField(required=False, widget=forms.HiddenInput)
    """The signed document while operations are selected."""
    credential = forms.ModelChoiceField(
        label=_("Credential"),
        queryset=Credential.objects.none(),
        required=False,
        empty_label=_("None"),
        help_text=_("Sent with each call, only to the hosts it is bound to."),
    )

    def __init__(self, *args: Any, user: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        field = self.fields["credential"]
        if isinstance(field, forms.ModelChoiceField):
            field.queryset = Credential.objects.usable_by(user)

    def clean(self) -> dict[str, Any] | None:
        """Parse the document; errors go to the field it came from."""
        cleaned = super().clean() or {}
        try:
            cleaned["read"] = self.load_document(cleaned)
            cleaned["kept"] = cleaned.get("kept") or pack_document(cleaned["read"])
        except DocumentRefused as refused:
            self.add_error("file" if cleaned.get("file") else "document", str(refused))
        return cleaned

    def load_document(self, cleaned: dict[str, Any]) -> OpenApiDocument:
        """Return the document that was uploaded, pasted or sent back by the page."""
        if kept := cleaned.get("kept"):
            return unpack_document(kept)
        text = cleaned.get("document") or ""
        if uploaded := cleaned.get("file"):
            if uploaded.size > MAX_BYTES:
                raise DocumentTooLarge
            text = uploaded.read().decode("utf-8-sig", "replace")
        if not text.strip():
            raise DocumentMissing
        return parse_openapi_document(text)

    @property
    def parsed_document(self) -> OpenApiDocument:
        """The document of a valid form."""
        document: OpenApiDocument = self.cleaned_data["read"]
        return document

    def operations(self) -> list[Operation]:
        """Return the operations that can be selected."""
        return list_operations(self.parsed_document, base=self.cleaned_data["base"])


def pack_document(document: OpenApiDocument) -> str:
    """Return the document signed and compressed to about a tenth.

    It travels with the page that shows the operations, so that nothing is stored.
    """
    try:
        text = signing.dumps(document.body, salt=SALT, compress=True)
    except RecursionError:
        raise DocumentUnreadable(gettext("it is nested too deeply")) from None
    if len(text) > MAX_PACKED:
        raise DocumentTooLarge
    return text


def unpack_document(text: str) -> OpenApiDocument:
    """Return the document packed within the last day."""
    try:
        return OpenApiDocument(signing.loads(text, salt=SALT, max_age=86_400))
    except signing.BadSignature:
        raise DocumentMissing from None
