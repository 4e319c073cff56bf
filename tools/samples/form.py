"""The form in which a request is pasted."""

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from tools.samples.curl_command import SampleRequest, parse_sample_request
from tools.samples.draft_tool import SampleDraft, draft_tool_from_sample
from tools.samples.errors import SampleRefused


class SampleForm(forms.Form):
    """A cURL command or a URL."""

    text = forms.CharField(
        label=_("cURL command or URL"),
        widget=forms.Textarea(
            attrs={
                "rows": 10,
                "class": "input mono",
                "spellcheck": "false",
                "autocomplete": "off",
                "placeholder": "curl -X POST https://api.example.com/v1/orders \\\n"
                "  -H 'Content-Type: application/json' \\\n"
                """  -d '{"item": "lamp", "count": 2}'""",
            }
        ),
        error_messages={"required": _("Paste a cURL command or a URL.")},
    )

    sample: SampleRequest
    draft: SampleDraft

    def clean_text(self) -> str:
        """Parse the request; nothing is sent."""
        text: str = self.cleaned_data["text"]
        try:
            self.sample = parse_sample_request(text)
            self.draft = draft_tool_from_sample(self.sample)
        except SampleRefused as refused:
            raise ValidationError(str(refused)) from None
        return text

    @property
    def plain_url(self) -> str:
        """The URL, if nothing else was pasted."""
        text: str = self.cleaned_data["text"]
        return text if text.startswith("http") else ""
