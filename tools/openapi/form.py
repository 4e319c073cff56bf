"""The forms that import an OpenAPI document: upload it, then select operations."""

from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from tools.models import Credential, UploadedDocument
from tools.openapi.document import (
    MAX_BYTES,
    DocumentRefused,
    DocumentTooLarge,
    OpenApiDocument,
    parse_openapi_document,
)
from tools.openapi.uploads import store_upload


class DocumentMissing(DocumentRefused):
    """Nothing was submitted."""

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
        max_length=2000,
        assume_scheme="https",
        help_text=_(
            "Required if the document has no full server URL. You can also "
            "enter the URL of another server."
        ),
    )
    credential = forms.ModelChoiceField(
        label=_("Credential"),
        queryset=Credential.objects.none(),
        required=False,
        empty_label=_("None"),
        help_text=_("Sent with each call, only to the hosts it is bound to."),
    )

    def __init__(self, *args: Any, user: User, **more: Any) -> None:
        super().__init__(*args, **more)
        self.user = user
        field = self.fields["credential"]
        if isinstance(field, forms.ModelChoiceField):
            field.queryset = Credential.objects.usable_by(user)

    def clean(self) -> dict[str, Any] | None:
        """Parse and store the document; errors go to the field it came from."""
        cleaned = super().clean() or {}
        try:
            document = self.parse_document(cleaned)
            if not self.errors:
                cleaned["upload"] = store_upload(
                    document,
                    by=self.user,
                    server_url=cleaned["base"],
                    credential=cleaned["credential"],
                )
        except DocumentRefused as refused:
            self.add_error("file" if cleaned.get("file") else "document", str(refused))
        return cleaned

    def parse_document(self, cleaned: dict[str, Any]) -> OpenApiDocument:
        text = cleaned.get("document") or ""
        if uploaded := cleaned.get("file"):
            if uploaded.size > MAX_BYTES:
                raise DocumentTooLarge
            text = uploaded.read().decode("utf-8-sig", "replace")
        if not text.strip():
            raise DocumentMissing
        return parse_openapi_document(text)

    @property
    def upload(self) -> UploadedDocument:
        upload: UploadedDocument = self.cleaned_data["upload"]
        return upload
