"""Forms of a user's account: sign-in, password, API tokens."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.auth.forms import AuthenticationForm, SetPasswordForm
from django.contrib.auth.models import User
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.forms.widgets import style_widgets


class SignInForm(AuthenticationForm):
    """Name and password."""

    error_messages = {
        "invalid_login": gettext_lazy(
            "The name or password is wrong. Both are case-sensitive."
        ),
        "inactive": gettext_lazy("This account is disabled. Ask an administrator."),
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        self.fields["username"].label = _("Name")
        style_widgets(self)


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
        if user.has_usable_password():
            self.order_fields(["old_password", "new_password1", "new_password2"])
        else:
            del self.fields["old_password"]
        style_widgets(self)

    def clean_old_password(self) -> str:
        old: str = self.cleaned_data["old_password"]
        if not self.user.check_password(old):
            raise forms.ValidationError(_("The current password is wrong."))
        return old


class TokenForm(forms.Form):
    """The name of a new API token."""

    name = forms.CharField(
        max_length=120,
        label=gettext_lazy("Name"),
        widget=forms.TextInput(attrs={"placeholder": gettext_lazy("Nightly report")}),
        help_text=gettext_lazy(
            "Where you use the token, so that you know which one to revoke."
        ),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        style_widgets(self)
