"""The form that takes an agent file: chosen from the disk, or pasted."""

from typing import Any

from django import forms
from django.core.files.uploadedfile import UploadedFile

from runs.forms.looks import dress
from runs.services.agentfile_text import LONGEST
from runs.services.errors import FieldError

BYTES_A_CHARACTER = 4
"""UTF-8 takes no more."""


class AgentImportForm(forms.Form):
    """One text; that of the file counts where both are given."""

    file = forms.FileField(
        required=False,
        allow_empty_file=True,
        label="File",
        widget=forms.FileInput(attrs={"accept": ".yaml,.yml,.json"}),
        help_text="YAML or JSON, as Export gives it.",
    )
    text = forms.CharField(
        required=False,
        strip=False,
        label="Text",
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
        dress(self)

    def clean(self) -> dict[str, Any]:
        """Put the text of a chosen file where a pasted one would be."""
        given: dict[str, Any] = super().clean() or self.cleaned_data
        if isinstance(given.get("file"), UploadedFile):
            self._take_file(given)
        if not self.errors and not given.get("text", "").strip():
            self.add_error("text", "Choose a file or paste its text.")
        return given

    def _take_file(self, given: dict[str, Any]) -> None:
        file: UploadedFile = given["file"]
        if (file.size or 0) > LONGEST * BYTES_A_CHARACTER:
            self.add_error("file", f"The file is longer than {LONGEST} characters.")
            return
        try:
            given["text"] = file.read().decode("utf-8-sig")
        except UnicodeDecodeError:
            self.add_error("file", "The file is no UTF-8 text.")
            return
        self.errors.pop("text", None)
        # What was refused is shown again, to be mended in place.
        self.data = {**self.data.dict(), "text": given["text"]}  # type: ignore[attr-defined]  # a QueryDict

    def refuse(self, errors: list[FieldError]) -> None:
        """Show each mistake with its place in the file."""
        for place, message in errors:
            self.add_error("text", f"{place}: {message}")
