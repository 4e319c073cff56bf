"""Forms of service accounts in the admin, and the filter that finds them."""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.contrib.auth.forms import UsernameField
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from tools.accounts.save import change_description
from tools.accounts.service_account import ServiceAccount
from tools.typed_generics import ModelForm

SERVICE = "service"
"""Value of `?kind=` of the form of a new user, and of the list."""


def build_description_field() -> forms.CharField:
    field = ServiceAccount._meta.get_field("description")
    return forms.CharField(
        label=_("Description"),
        max_length=field.max_length,
        required=False,
        help_text=_("What the program does, and whom to ask about it."),
    )


class NewServiceAccountForm(ModelForm):
    """Name, description and groups."""

    description = build_description_field()

    class Meta:
        model = User
        fields = ("username", "groups")
        field_classes: ClassVar[dict[str, Any]] = {"username": UsernameField}
        labels = {"username": _("Name")}
        help_texts = {
            "username": _("Letters, digits and @ . + - _"),
            "groups": _("The program can use what is shared with these groups."),
        }


class EditServiceAccountForm(ModelForm):
    """A service account; the description is saved by `save_model`."""

    description = build_description_field()

    class Meta:
        model = User
        fields = ("username", "groups", "is_active", "is_staff", "user_permissions")
        field_classes: ClassVar[dict[str, Any]] = {"username": UsernameField}
        labels = {
            "username": _("Name"),
            "is_active": _("Enabled"),
            "is_staff": _("Has the permissions of the administration"),
        }
        help_texts = {
            "username": _("Letters, digits and @ . + - _"),
            "groups": _("The program can use what is shared with these groups."),
            "is_active": _("While this is cleared, its tokens are refused."),
            "is_staff": _("Without this, the permissions below have no effect."),
        }

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        account = self.instance.service_account
        self.initial.setdefault("description", account.description)

    def save_description(self) -> None:
        account = self.instance.service_account
        change_description(account, self.cleaned_data["description"])


EDIT_FIELDSETS = (
    (None, {"fields": ["username", "description", "is_active", "groups"]}),
    (
        _("Administration"),
        {"fields": ["is_staff", "user_permissions"], "classes": ["rights"]},
    ),
)
NEW_FIELDSETS = ((None, {"fields": ["username", "description", "groups"]}),)


class AccountKindFilter(admin.SimpleListFilter):
    """Filters people and service accounts."""

    title = _("type")
    parameter_name = "kind"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        return [("person", _("Person")), (SERVICE, _("Service account"))]

    def queryset(self, request: HttpRequest, users: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() not in ("person", SERVICE):
            return users
        return users.filter(service_account__isnull=self.value() == "person")
