"""The form of a person's e-mail notifications."""

from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.forms.widgets import style_widgets
from runs.models import ApprovalLink, Preferences

CHOICES = ("emails_approvals", "emails_failures", "emails_schedules")


class NotificationsForm(forms.Form):
    """The address, and what is sent to it."""

    email = forms.EmailField(
        required=False,
        max_length=254,
        label=gettext_lazy("E-mail address"),
        widget=forms.EmailInput(attrs={"autocomplete": "email"}),
    )
    emails_approvals = forms.BooleanField(
        required=False,
        label=gettext_lazy("A call awaits my approval"),
        help_text=gettext_lazy(
            "With a link that shows the exact arguments and answers once."
        ),
    )
    emails_failures = forms.BooleanField(
        required=False,
        label=gettext_lazy("A run of mine failed"),
        help_text=gettext_lazy("Not for test runs."),
    )
    emails_schedules = forms.BooleanField(
        required=False,
        label=gettext_lazy("A schedule of mine could not start a run"),
    )

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        self.user = user
        stored = Preferences.objects.filter(user=user).first() or Preferences()
        initial = {name: getattr(stored, name) for name in CHOICES}
        kwargs["initial"] = {**initial, "email": user.email}
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        style_widgets(self)

    def list_choices(self) -> list[forms.BoundField]:
        return [self[name] for name in CHOICES]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        wanted = any(cleaned.get(name) for name in CHOICES)
        if wanted and not cleaned.get("email") and not self.errors.get("email"):
            self.add_error("email", _("Enter the address to which messages are sent."))
        return cleaned

    def save(self) -> None:
        """Store both; links that went to another address stop working."""
        email = self.cleaned_data["email"]
        with transaction.atomic():
            if email != self.user.email:
                ApprovalLink.objects.filter(user=self.user, used_at=None).delete()
            self.user.email = email
            self.user.save(update_fields=["email"])
            Preferences.objects.update_or_create(
                user=self.user,
                defaults={name: self.cleaned_data[name] for name in CHOICES},
            )
