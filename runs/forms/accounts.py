"""Forms of one person: signing in, a new password, a token's name."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.auth.forms import AuthenticationForm, SetPasswordForm
from django.contrib.auth.models import User

from runs.forms.looks import dress


class SignInForm(AuthenticationForm):
    """Name and password, with plain sentences."""

    error_messages = {
        "invalid_login": "This name and password do not belong together. "
        "Capital letters matter.",
        "inactive": "This account was switched off by an administrator.",
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        self.fields["username"].label = "Name"
        dress(self)


if TYPE_CHECKING:
    _SetPasswordForm = SetPasswordForm[User]
else:
    _SetPasswordForm = SetPasswordForm


class PasswordForm(_SetPasswordForm):
    """A new password, twice; the old one first, where there is one."""

    old_password = forms.CharField(
        label="Current password",
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )
    error_messages = {"password_mismatch": "The two new passwords differ."}

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(user, *args, **kwargs)
        self.label_suffix = ""
        self.fields["new_password1"].label = "New password"
        self.fields[
            "new_password1"
        ].help_text = (
            "At least 8 characters, not only digits, and none of the common ones."
        )
        self.fields["new_password2"].label = "The same again"
        self.fields["new_password2"].help_text = ""
        if user.has_usable_password():
            self.order_fields(["old_password", "new_password1", "new_password2"])
        else:
            del self.fields["old_password"]
        dress(self)

    def clean_old_password(self) -> str:
        """Refuse a wrong old password."""
        old: str = self.cleaned_data["old_password"]
        if not self.user.check_password(old):
            raise forms.ValidationError("This is not your password.")
        return old


class TokenForm(forms.Form):
    """What a token is for."""

    name = forms.CharField(
        max_length=120,
        label="Name",
        widget=forms.TextInput(attrs={"placeholder": "Nightly report"}),
        help_text="Where it will be used, so that you know later which to revoke.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        dress(self)
