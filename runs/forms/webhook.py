"""The form of a webhook: where to, what of, in which shape."""

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django import forms
from django.db.models import Q

from runs.forms.looks import dress
from runs.models import Agent, Event, Webhook
from runs.services.post_delivery import webhook_policy
from runs.services.sign_delivery import new_secret
from tools.netpolicy import AddressRefused, target_of
from tools.secrets import SecretUnreadable, seal
from tools.web_address import flaw_of_address, names_a_person

LONGEST = 2_000

if TYPE_CHECKING:
    _ModelForm = forms.ModelForm[Webhook]
else:
    _ModelForm = forms.ModelForm


class WebhookForm(_ModelForm):
    """Who is told, and of what."""

    url = forms.CharField(
        max_length=LONGEST,
        label="Address",
        help_text="Such as https://example.org/agentsite, or what your chat gives you "
        "for an incoming webhook. Kept encrypted.",
        widget=forms.TextInput(
            attrs={"inputmode": "url", "autocomplete": "off", "class": "mono"}
        ),
    )
    events = forms.MultipleChoiceField(
        choices=[(event.value, f"It {event.label}") for event in Event],
        label="Which changes of a run are told",
        widget=forms.CheckboxSelectMultiple,
    )
    agent = forms.ModelChoiceField(
        queryset=Agent.objects.none(),
        required=False,
        label="Agent",
        empty_label="All agents",
        help_text="Whose runs are told.",
    )

    class Meta:
        model = Webhook
        fields = ["name", "shape", "events", "agent", "everything"]
        labels = {"shape": "What is sent", "everything": "Runs of everyone"}
        help_texts = {
            "shape": "A line of text is what Slack, Mattermost, Rocket.Chat and "
            "Google Chat take.",
            "everything": "Not only your own. It counts while you are an "
            "administrator.",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        owner = self.instance.owner
        usable = Agent.objects.usable_by(owner).values("pk")
        chosen = Q(webhooks=self.instance) if self.instance.pk else Q()
        offered = Agent.objects.filter(Q(pk__in=usable) | chosen).distinct()
        self.fields["agent"].queryset = offered.order_by("name")  # type: ignore[attr-defined]  # a choice of rows
        if not owner.is_superuser:
            del self.fields["everything"]
        if self.instance.pk and self._has_address():
            self._offer_to_keep_it()
        dress(self)
        self.fields["events"].error_messages["required"] = "Choose one or more."

    def _has_address(self) -> bool:
        try:
            return bool(self.instance.url())
        except SecretUnreadable:
            return False

    def _offer_to_keep_it(self) -> None:
        field = self.fields["url"]
        field.required = False
        field.widget.attrs["placeholder"] = f"{self.instance.host}/…"
        field.help_text = (
            "Set, never shown whole: who has it may write there. A new one replaces it."
        )

    def clean_url(self) -> str:
        """Refuse what is no address, and what may never or not yet be called."""
        url: str = self.cleaned_data["url"].strip()
        if not url:
            return ""
        flaw = flaw_of_address(url)
        if not flaw and urlsplit(url).fragment:
            flaw = "what stands behind # is never sent"
        if flaw:
            raise forms.ValidationError(f"{url!r} is no web address: {flaw}.")
        if names_a_person(url):
            raise forms.ValidationError(
                "Leave name and password out of the address. Each request is signed; "
                "the receiver knows by that who sends."
            )
        try:
            check_address(url)
        except AddressRefused as refused:
            raise forms.ValidationError(str(refused)) from None
        return url

    def save(self, commit: bool = True) -> Webhook:
        """Seal an address that was typed; a new webhook gets its secret."""
        if self.cleaned_data["url"]:
            self.instance.set_url(self.cleaned_data["url"])
        if not self.instance.sealed_secret:
            self.instance.sealed_secret = seal(new_secret())
        return super().save(commit)


def check_address(url: str) -> None:
    """Raise `AddressRefused` where one sees by the address itself that it may not be.

    A name is looked up at each call, and what it points to is checked then.
    """
    policy = webhook_policy()
    policy.check_url(url)
    host, address, port = target_of(url)
    if address is not None:
        policy.check_address(host, address, port)
