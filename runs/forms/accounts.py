"""Forms of a user's account: sign-in, password, API tokens."""

from datetime import timedelta
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.auth.forms import AuthenticationForm, SetPasswordForm
from django.contrib.auth.models import User
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from runs.forms.widgets import style_widgets
from runs.models import ApiToken
from runs.models.accounts import USUAL_SCOPES
from runs.services.accounts.tokens import (
    create_token,
    get_valid_tokens,
    revoke_all_tokens,
)
from runs.services.errors import TooManyTokens
from tools.accounts.service_account import is_service_account

PASSWORD_CHECKS = BoundedSemaphore(2)
"""Passwords checked at the same time, so that the CPU stays free for others."""
MAX_WAIT_SECONDS = 1.0


class SignInForm(AuthenticationForm):
    """Name and password."""

    error_messages = {
        "invalid_login": gettext_lazy(
            "The name or password is wrong. Both are case-sensitive."
        ),
        "inactive": gettext_lazy("This account is disabled. Ask an administrator."),
        "service": gettext_lazy(
            "This is a service account. Programs use it with an API token."
        ),
        "busy": gettext_lazy("Too many people are signing in. Try again."),
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        self.fields["username"].label = _("Name")
        style_widgets(self)

    def clean(self) -> dict[str, Any]:
        """Check the password; a hash takes a second of CPU, also for unknown names."""
        if not PASSWORD_CHECKS.acquire(timeout=MAX_WAIT_SECONDS):
            raise forms.ValidationError(self.error_messages["busy"], code="busy")
        try:
            return super().clean()
        finally:
            PASSWORD_CHECKS.release()

    def confirm_login_allowed(self, user: Any) -> None:
        """Refuse service accounts, also one that was given a password by a command."""
        super().confirm_login_allowed(user)
        if is_service_account(user):
            message = self.error_messages["service"]
            raise forms.ValidationError(message, code="service")


if TYPE_CHECKING:
    _SetPasswordForm = SetPasswordForm[User]
else:
    _SetPasswordForm = SetPasswordForm


class ChangePasswordForm(_SetPasswordForm):
    """A new password, with the current one if the user has one."""

    old_password = forms.CharField(
        label=gettext_lazy("Current password"),
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )
    error_messages = {
        "password_mismatch": gettext_lazy("The two passwords do not match.")
    }

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(user, *args, **kwargs)
        self.label_suffix = ""
        self.fields["new_password1"].label = _("New password")
        self.fields["new_password1"].help_text = _(
            "At least 8 characters, not only digits, and not a common password."
        )
        self.fields["new_password2"].label = _("Confirm new password")
        self.fields["new_password2"].help_text = ""
        count = get_valid_tokens(user).count()
        if count:
            self.fields["revoke_tokens"] = forms.BooleanField(
                required=False,
                label=ngettext(
                    "Also revoke my %(count)s API token",
                    "Also revoke my %(count)s API tokens",
                    count,
                )
                % {"count": count},
                help_text=_("Tokens keep working after a new password."),
            )
        if user.has_usable_password():
            self.order_fields(["old_password", "new_password1", "new_password2"])
        else:
            del self.fields["old_password"]
        style_widgets(self)

    def save(self, commit: bool = True) -> User:
        user = super().save(commit)
        if self.cleaned_data.get("revoke_tokens"):
            revoke_all_tokens(user)
        return user

    def clean_old_password(self) -> str:
        old: str = self.cleaned_data["old_password"]
        if not self.user.check_password(old):
            raise forms.ValidationError(_("The current password is wrong."))
        return old


TOKEN_LIFETIMES = (
    ("30", gettext_lazy("30 days")),
    ("90", gettext_lazy("90 days")),
    ("365", gettext_lazy("One year")),
    ("0", gettext_lazy("Never")),
)


class TokenForm(forms.Form):
    """Name, scopes and lifetime of a new API token."""

    name = forms.CharField(
        max_length=120,
        label=gettext_lazy("Name"),
        widget=forms.TextInput(attrs={"placeholder": gettext_lazy("Nightly report")}),
        help_text=gettext_lazy(
            "Where you use the token, so that you know which one to revoke."
        ),
    )
    scopes = forms.MultipleChoiceField(
        choices=ApiToken.Scope.choices,
        initial=USUAL_SCOPES.split(),
        label=gettext_lazy("Scopes"),
        widget=forms.CheckboxSelectMultiple,
    )
    days = forms.ChoiceField(
        choices=TOKEN_LIFETIMES,
        initial="90",
        label=gettext_lazy("Expires after"),
    )

    def __init__(self, *args: Any, owner: User | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.owner = owner
        self.label_suffix = ""
        style_widgets(self)

    def save(self) -> str | None:
        """Return a new token of `owner`; None, with an error, if there are too many."""
        assert self.owner is not None  # only a form that is not sent has none
        given = self.cleaned_data
        try:
            return create_token(
                self.owner,
                given["name"],
                scopes=given["scopes"],
                lifetime=timedelta(days=int(given["days"])) or None,
            )
        except TooManyTokens as error:
            self.add_error(None, str(error))
            return None
