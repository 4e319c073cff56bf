"""People and groups in the admin, in the words of the product."""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin
from django.contrib.auth.forms import UsernameField
from django.contrib.auth.models import Group, Permission, User
from django.db.models import Case, Q, QuerySet, When
from django.http import HttpRequest
from django.utils.safestring import SafeString

from tools.admin_parts import when
from tools.admin_plain import PlainAdmin, quiet, titled
from tools.forms.missing import say_what_is_right
from tools.generic import (
    ModelForm,
    ModelMultipleChoiceField,
    PasswordChangeForm,
    UserAdmin,
    UserCreationForm,
)

MAY = {
    "view_tool": "See and try tools",
    "add_tool": "Make tools",
    "change_tool": "Change their own tools",
    "view_mcpserver": "See MCP servers",
    "add_mcpserver": "Add MCP servers",
    "change_mcpserver": "Change their own servers",
    "view_credential": "See credentials' names",
    "add_credential": "Store credentials",
    "change_credential": "Change their own credentials",
    "view_user": "See who there is",
    "add_user": "Add people",
    "change_user": "Change people and their rights",
    "view_group": "See groups",
    "add_group": "Make groups",
    "change_group": "Change groups and their rights",
    "delete_user": "Delete people",
    "delete_group": "Delete groups",
    "view_auditentry": "Read the audit log",
}
"""What a right means; the others have no page, and no effect."""


ALL_OF_IT = (
    "All of it: they are an administrator. What is ticked one by one counts again "
    "once they are none."
)
"""In place of single rights, which an administrator has without a tick."""


class RightsField(ModelMultipleChoiceField):
    """Rights as sentences, in the order of the list."""

    def __init__(self, queryset: QuerySet[Permission], **more: Any) -> None:
        super().__init__(queryset, widget=forms.CheckboxSelectMultiple, **more)

    def label_from_instance(self, obj: Any) -> str:
        """Return the sentence; Django's words for a right of an add-on."""
        return MAY.get(obj.codename, str(obj))


def rights_field(held: Any, label: str) -> RightsField:
    """Return the field for the rights that have a page, and those somebody has."""
    known = Q(
        codename__in=MAY, content_type__app_label__in=("tools", "auth")
    )  # an add-on may use the same name
    own = Q(pk__in=held.values("pk")) if held is not None else Q()
    rows = Permission.objects.filter(known | own if held is not None else known)
    places = [When(codename=name, then=place) for place, name in enumerate(MAY)]
    return RightsField(
        rows.order_by(Case(*places, default=len(MAY)), "pk"),
        label=label,
        required=False,
    )


def in_plain_words(form: forms.BaseForm) -> None:
    """Say in one line what a password must be; whoever types it, it is not theirs."""
    first, again = form.fields["password1"], form.fields["password2"]
    first.help_text = "8 characters or more; no common word, and not digits alone."
    again.label, again.help_text = "The same again", ""
    for name, field in (("password1", first), ("password2", again)):
        say_what_is_right(name, field)
        field.is_needed = True  # type: ignore[attr-defined]  # for the template


class PersonForm(ModelForm):
    """A person, without the digest of the password."""

    class Meta:
        model = User
        fields = (
            *("username", "first_name", "last_name", "email", "groups"),
            *("is_active", "is_staff", "is_superuser", "user_permissions"),
        )
        field_classes: ClassVar[dict[str, Any]] = {"username": UsernameField}
        labels = {
            "is_active": "May sign in",
            "is_staff": "Opens the administration",
            "is_superuser": "Administrator",
        }
        help_texts = {
            "username": "Letters, digits and @ . + - _",
            "is_active": "Take this away instead of deleting: runs and agents stay.",
            "is_staff": "And sees there what is ticked below.",
            "is_superuser": "Sees and changes everything, of everybody.",
            "groups": "Whose members share agents, tools, prompts and providers.",
        }


class NewPersonForm(UserCreationForm):
    """A name, and a password to begin with."""

    class Meta:
        model = User
        fields = ("username",)
        field_classes: ClassVar[dict[str, Any]] = {"username": UsernameField}
        help_texts = {"username": "Letters, digits and @ . + - _"}

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        in_plain_words(self)


class PasswordForm(PasswordChangeForm):
    """A new password for somebody."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        in_plain_words(self)
        for name in ("password1", "password2"):
            self.fields[name].widget.attrs["class"] = "input"


class PersonAdmin(PlainAdmin, UserAdmin):
    """Who may sign in, and what they may do."""

    noun = "user"
    actions = None
    form = PersonForm
    add_form = NewPersonForm
    add_form_template = None
    change_password_form = PasswordForm
    fieldsets = (
        (None, {"fields": ["username", ("first_name", "last_name"), "email"]}),
        (
            "What they may do",
            {"fields": [("is_active", "is_superuser"), "groups"]},
        ),
        (
            "In the administration",
            {"fields": ["is_staff", "user_permissions"], "classes": ["rights"]},
        ),
    )
    add_fieldsets = ((None, {"fields": ["username", ("password1", "password2")]}),)
    list_display = ("username", "whole_name", "email", "role", "seen")
    list_filter = (
        ("is_active", titled(admin.BooleanFieldListFilter, "may sign in")),
        ("is_staff", titled(admin.BooleanFieldListFilter, "opens the administration")),
        ("is_superuser", titled(admin.BooleanFieldListFilter, "administrator")),
        "groups",
    )
    filter_horizontal = ()

    @admin.display(description="Name", ordering="first_name")
    def whole_name(self, user: User) -> str:
        """First and last name."""
        return user.get_full_name()

    @admin.display(description="May", ordering="is_superuser")
    def role(self, user: User) -> str:
        """What the ticks come to."""
        if not user.is_active:
            return "not sign in"
        if user.is_superuser:
            return "do everything"
        return "open the administration" if user.is_staff else "build and run agents"

    @admin.display(description="Last sign-in", ordering="last_login")
    def seen(self, user: User) -> SafeString | str:
        """How long ago."""
        return when(user.last_login)

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **more: Any
    ) -> Any:
        """Saving a new person leads to their page anyway."""
        context["show_save_and_continue"] = context.get("original") is not None
        return super().render_change_form(request, context, *args, **more)

    def formfield_for_manytomany(
        self, db_field: Any, request: HttpRequest, **more: Any
    ) -> Any:
        """Offer groups as boxes, and rights as sentences."""
        if db_field.name == "groups":
            more["widget"] = forms.CheckboxSelectMultiple
        return super().formfield_for_manytomany(db_field, request, **more)

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **more: Any
    ) -> Any:
        """Offer the rights that mean something here."""
        form = super().get_form(request, obj, change=change, **more)
        if "user_permissions" in form.base_fields:
            held = obj.user_permissions if obj else None
            field = rights_field(held, "They may also")
            field.help_text = ALL_OF_IT
            form.base_fields["user_permissions"] = field
        return form


class TeamAdmin(PlainAdmin, GroupAdmin):
    """People who share agents, tools, prompts and providers."""

    noun = "group"
    actions = None
    filter_horizontal = ()
    list_display = ("name", "members")
    fieldsets = (
        (None, {"fields": ["name"]}),
        ("In the administration", {"fields": ["permissions"], "classes": ["rights"]}),
    )

    @admin.display(description="Members", empty_value=quiet("nobody"))
    def members(self, group: Group) -> str:
        """The first few names."""
        names = [user.get_full_name() or user.username for user in group.user_set.all()]
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        return ", ".join(names[:5]) + more

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the groups with their members."""
        rows: QuerySet[Any] = super().get_queryset(request)
        return rows.prefetch_related("user_set")

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **more: Any
    ) -> Any:
        """Offer the rights that mean something here."""
        form = super().get_form(request, obj, change=change, **more)
        if "permissions" in form.base_fields:
            held = obj.permissions if obj else None
            form.base_fields["permissions"] = rights_field(held, "Its members may")
        return form
