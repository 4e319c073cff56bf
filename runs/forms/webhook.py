"""The form of a webhook: address, events and format."""

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django import forms
from django.db.models import Q
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.forms.widgets import style_widgets
from runs.models import Agent, Webhook, WebhookEvent
from runs.services.webhooks.post import get_webhook_net_policy
from runs.services.webhooks.sign import generate_webhook_secret
from tools.net.address_flaw import find_address_flaw
from tools.net.netpolicy import AddressRefused, parse_url_target
from tools.net.web_address import has_userinfo
from tools.secrets import SecretUnreadable, seal

MAX_URL_LENGTH = 2_000
EVENT_LABELS = {
    WebhookEvent.NEEDS_APPROVAL: gettext_lazy("Awaiting approval"),
    WebhookEvent.NEEDS_DECISION: gettext_lazy("Awaiting decision"),
    WebhookEvent.SUCCEEDED: gettext_lazy("Succeeded"),
    WebhookEvent.LIMIT_REACHED: gettext_lazy("Limit reached"),
    WebhookEvent.FAILED: gettext_lazy("Failed"),
    WebhookEvent.CANCELED: gettext_lazy("Canceled"),
}

if TYPE_CHECKING:
    _ModelForm = forms.ModelForm[Webhook]
else:
    _ModelForm = forms.ModelForm


class WebhookForm(_ModelForm):
    """Where a webhook sends events, and which ones."""

    url = forms.CharField(
        max_length=MAX_URL_LENGTH,
        label=gettext_lazy("URL"),
        help_text=gettext_lazy(
            "For example https://example.org/agentsite, or the URL of an incoming "
            "webhook of your chat. Stored encrypted."
        ),
        widget=forms.TextInput(
            attrs={"inputmode": "url", "autocomplete": "off", "class": "mono"}
        ),
    )
    events = forms.MultipleChoiceField(
        choices=[(event.value, label) for event, label in EVENT_LABELS.items()],
        label=gettext_lazy("Events"),
        widget=forms.CheckboxSelectMultiple,
    )
    agent = forms.ModelChoiceField(
        queryset=Agent.objects.none(),
        required=False,
        label=gettext_lazy("Agent"),
        empty_label=gettext_lazy("All agents"),
        help_text=gettext_lazy("Send events of this agent's runs only."),
    )

    class Meta:
        model = Webhook
        fields = ["name", "shape", "events", "agent", "everything"]
        labels = {
            "name": gettext_lazy("Name"),
            "shape": gettext_lazy("Format"),
            "everything": gettext_lazy("Runs of all users"),
        }
        help_texts = {
            "shape": gettext_lazy(
                "Slack, Mattermost, Rocket.Chat and Google Chat expect a line of text."
            ),
            "everything": gettext_lazy(
                "Not only your own runs. Applies while you are an administrator."
            ),
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
            self._make_url_optional()
        style_widgets(self)
        self.fields["events"].error_messages["required"] = _(
            "Select at least one event."
        )

    def _has_address(self) -> bool:
        try:
            return bool(self.instance.url())
        except SecretUnreadable:
            return False

    def _make_url_optional(self) -> None:
        field = self.fields["url"]
        field.required = False
        field.widget.attrs["placeholder"] = f"{self.instance.host}/…"
        field.help_text = _(
            "A URL is stored. It is not shown in full, because anyone who knows it can "
            "post there. Enter a new one to replace it."
        )

    def clean_url(self) -> str:
        """Refuse invalid URLs and addresses that must not be called."""
        url: str = self.cleaned_data["url"].strip()
        if not url:
            return ""
        flaw = find_address_flaw(url)
        if not flaw and urlsplit(url).fragment:
            flaw = _("the part after # is never sent")
        if flaw:
            raise forms.ValidationError(
                _("%(url)s is not a valid web address: %(reason)s.")
                % {"url": repr(url), "reason": flaw}
            )
        if has_userinfo(url):
            raise forms.ValidationError(
                _(
                    "Remove the user name and password from the URL. Each request is "
                    "signed, so the receiver can check who sent it."
                )
            )
        try:
            check_webhook_address(url)
        except AddressRefused as refused:
            raise forms.ValidationError(str(refused)) from None
        return url

    def save(self, commit: bool = True) -> Webhook:
        """Encrypt a new URL; give a new webhook its secret."""
        if self.cleaned_data["url"]:
            self.instance.set_url(self.cleaned_data["url"])
        if not self.instance.sealed_secret:
            self.instance.sealed_secret = seal(generate_webhook_secret())
        return super().save(commit)


def check_webhook_address(url: str) -> None:
    """Raise `AddressRefused` if the URL itself shows that it must not be called.

    A host name is resolved and checked at each call.
    """
    policy = get_webhook_net_policy()
    policy.check_url(url)
    host, address, port = parse_url_target(url)
    if address is not None:
        policy.check_address(host, address, port)
