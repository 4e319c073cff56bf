"""The form that imports an agent file, uploaded or pasted."""

from typing import Any

from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.forms.widgets import style_widgets
from runs.services.errors import FieldError
from runs.services.importers.document import MAX_JSON_CHARS

BYTES_PER_CHARACTER = 4
"""The most that UTF-8 needs."""


class AgentImportForm(forms.Form):
    """An uploaded file or pasted text; the file takes precedence."""

    file = forms.FileField(
        required=False,
        allow_empty_file=True,
        label=gettext_lazy("File"),
        widget=forms.FileInput(attrs={"accept": ".yaml,.yml,.json,.py,.ts"}),
        help_text=gettext_lazy("An agent file, or a file of another product."),
    )
    text = forms.CharField(
        required=False,
        strip=False,
        label=gettext_lazy("Text"),
        widget=forms.Textarea(
            attrs={"rows": 18, "class": "mono", "spellcheck": "false"}
        ),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        for one in self.fields.values():  # one of the two, so neither is "optional"
            one.is_needed = True  # type: ignore[attr-defined]  # read by the field part
        self.fields["text"].widget.attrs["placeholder"] = "agentfile: 1"
        style_widgets(self)

    @property
    def file_name(self) -> str:
        """Name of the uploaded file; empty if the text was pasted."""
        file = self.cleaned_data.get("file")
        return str(file.name or "") if isinstance(file, UploadedFile) else ""

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or self.cleaned_data
        if isinstance(given.get("file"), UploadedFile):
            self._read_file(given)
        if not self.errors and not given.get("text", "").strip():
            self.add_error("text", _("Select a file or paste its text."))
        return given

    def _read_file(self, given: dict[str, Any]) -> None:
        file: UploadedFile = given["file"]
        if (file.size or 0) > MAX_JSON_CHARS * BYTES_PER_CHARACTER:
            self.add_error(
                "file",
                _("The file is too long. Select one of at most %(limit)s characters.")
                % {"limit": number_format(MAX_JSON_CHARS, force_grouping=True)},
            )
            return
        try:
            given["text"] = file.read().decode("utf-8-sig")
        except UnicodeDecodeError:
            self.add_error(
                "file", _("The file is not UTF-8 text. Save it as UTF-8 and try again.")
            )
            return
        self.errors.pop("text", None)
        # The text of an invalid file is shown, so that it can be fixed in place.
        self.replace_text(given["text"])

    def replace_text(self, text: str) -> None:
        self.data = {**self.data, "text": text}

    def add_file_errors(self, errors: list[FieldError]) -> None:
        for place, message in errors:
            self.add_error("text", f"{place}: {message}")
