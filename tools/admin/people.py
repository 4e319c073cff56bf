"""Users and groups in the admin."""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import flatten_fieldsets
from django.contrib.auth.admin import GroupAdmin
from django.contrib.auth.forms import UsernameField
from django.contrib.auth.models import Group, Permission, User
from django.core.exceptions import PermissionDenied
from django.db.models import Case, Max, Q, QuerySet, When
from django.http import HttpRequest, HttpResponse
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from tools.accounts.person_name import get_person_name
from tools.accounts.save import create_service_account
from tools.accounts.service_account import is_service_account
from tools.admin.base import ProductAdmin, filter_with_title, render_muted
from tools.admin.cells import render_time_ago
from tools.admin.grantable import (
    list_grantable_groups,
    list_held_permissions,
    may_administer,
)
from tools.admin.group_members import (
    build_members_field,
    may_change_members,
    render_members,
    save_members,
)
from tools.admin.service_accounts import (
    EDIT_FIELDSETS,
    NEW_FIELDSETS,
    SERVICE,
    AccountKindFilter,
    EditServiceAccountForm,
    NewServiceAccountForm,
)
from tools.forms.error_messages import set_error_messages
from tools.typed_generics import (
    ModelForm,
    ModelMultipleChoiceField,
    PasswordChangeForm,
    StrOrPromise,
    UserAdmin,
    UserCreationForm,
)

PERMISSIONS = (
    *("view_tool", "add_tool", "change_tool"),
    *("view_mcpserver", "add_mcpserver", "change_mcpserver"),
    *("view_credential", "add_credential", "change_credential"),
    *("view_user", "add_user", "change_user"),
    *("view_group", "add_group", "change_group"),
    *("delete_user", "delete_group", "view_auditentry"),
)
"""Permissions with a page, in the order of the form; the others have no effect."""

SUPERUSER_HELP = _(
    "Superusers have all permissions. The selection applies again when the person is "
    "no longer a superuser."
)


PERMISSION_VERBS = {
    "view": _("View %(objects)s"),
    "add": _("Add %(objects)s"),
    "change": _("Change %(objects)s"),
    "delete": _("Delete %(objects)s"),
}


class PermissionsField(ModelMultipleChoiceField):
    """Permissions as checkboxes."""

    def __init__(self, queryset: QuerySet[Permission], **more: Any) -> None:
        super().__init__(queryset, widget=forms.CheckboxSelectMultiple, **more)

    def label_from_instance(self, obj: Any) -> str:
        """Return a translated name; Django's own name for unusual permissions."""
        verb, _separator, model = obj.codename.partition("_")
        if verb not in PERMISSION_VERBS or model != obj.content_type.model:
            return str(obj.name)
        found = obj.content_type.model_class()
        noun = found._meta.verbose_name_plural if found else model
        return PERMISSION_VERBS[verb] % {"objects": noun}


def build_permissions_field(
    held: Any, label: StrOrPromise, *, by: User
) -> PermissionsField:
    """Return a field with those of `PERMISSIONS` that `by` holds, and those held."""
    known = Q(
        codename__in=PERMISSIONS, content_type__app_label__in=("tools", "auth")
    )  # an add-on may use the same name
    own = Q(pk__in=held.values("pk")) if held is not None else Q()
    rows = Permission.objects.select_related("content_type").filter(
        known | own if held is not None else known,
        pk__in=list_held_permissions(by).values("pk"),
    )
    places = [When(codename=name, then=place) for place, name in enumerate(PERMISSIONS)]
    return PermissionsField(
        rows.order_by(Case(*places, default=len(PERMISSIONS)), "pk"),
        label=label,
        required=False,
    )


def simplify_password_help(form: forms.BaseForm) -> None:
    """Describe the password rules in one line: it is not the typist's own."""
    first, again = form.fields["password1"], form.fields["password2"]
    first.help_text = gettext(
        "At least 8 characters, not a common password, and not only digits."
    )
    again.label, again.help_text = gettext("Confirm password"), ""
    for name, field in (("password1", first), ("password2", again)):
        set_error_messages(name, field)
        field.is_needed = True  # type: ignore[attr-defined]  # for the template


class EditUserForm(ModelForm):
    """A user, without the password hash."""

    class Meta:
        model = User
        fields = (
            *("username", "first_name", "last_name", "email", "groups"),
            *("is_active", "is_staff", "is_superuser", "user_permissions"),
        )
        field_classes: ClassVar[dict[str, Any]] = {"username": UsernameField}
        labels = {
            "is_active": _("Can sign in"),
            "is_staff": _("Can open the administration"),
            "is_superuser": _("Superuser"),
        }
        help_texts = {
            "username": _("Letters, digits and @ . + - _"),
            "is_active": _("Clear this instead of deleting the user."),
            "is_staff": _("Shows the pages selected below."),
            "is_superuser": _("Can view and change everything of all users."),
            "groups": _("Members share agents, tools, prompts and providers."),
        }


class NewUserForm(UserCreationForm):
    """A user name and an initial password."""

    class Meta:
        model = User
        fields = ("username",)
        field_classes: ClassVar[dict[str, Any]] = {"username": UsernameField}
        help_texts = {"username": _("Letters, digits and @ . + - _")}

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        simplify_password_help(self)


class SetPasswordForm(PasswordChangeForm):
    """A new password for another user."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        simplify_password_help(self)
        # Removing a password would not end tokens and login links, as a new one does.
        self.fields.pop("usable_password", None)
        for name in ("password1", "password2"):
            self.fields[name].required = True
            self.fields[name].widget.attrs["class"] = "input"


class RankedAdmin(ProductAdmin):
    """Pages of users and groups: those with more permissions are read-only."""

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        allowed: bool = super().has_change_permission(request, obj)
        return allowed and (obj is None or may_administer(acting_user(request), obj))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        allowed: bool = super().has_delete_permission(request, obj)
        return allowed and (obj is None or may_administer(acting_user(request), obj))


def acting_user(request: HttpRequest) -> User:
    assert isinstance(request.user, User)  # no page of the admin is public
    return request.user


def adds_service_account(request: HttpRequest) -> bool:
    """Whether the form of a new user is that of a service account."""
    return request.GET.get("kind") == SERVICE


class AccountAdmin(RankedAdmin, UserAdmin):
    """Users and their permissions."""

    noun = "user"
    actions = ("allow_sign_in", "refuse_sign_in")
    form = EditUserForm
    add_form = NewUserForm
    add_form_template = None
    change_password_form = SetPasswordForm
    fieldsets = (
        (None, {"fields": ["username", ("first_name", "last_name"), "email"]}),
        (
            _("Permissions"),
            {"fields": [("is_active", "is_superuser"), "groups"]},
        ),
        (
            _("Administration"),
            {"fields": ["is_staff", "user_permissions"], "classes": ["rights"]},
        ),
    )
    add_fieldsets = ((None, {"fields": ["username", ("password1", "password2")]}),)
    list_display = ("username", "full_name", "email", "role", "last_seen", "token_use")
    list_filter = (
        AccountKindFilter,
        (
            "is_active",
            filter_with_title(admin.BooleanFieldListFilter, _("can sign in")),
        ),
        (
            "is_staff",
            filter_with_title(
                admin.BooleanFieldListFilter, _("can open the administration")
            ),
        ),
        (
            "is_superuser",
            filter_with_title(admin.BooleanFieldListFilter, _("superuser")),
        ),
        "groups",
    )
    filter_horizontal = ()

    @admin.action(description=_("Allow sign-in"), permissions=["change"])
    def allow_sign_in(self, request: HttpRequest, users: QuerySet[User]) -> None:
        self._set_active(request, users, is_active=True)

    @admin.action(description=_("Refuse sign-in"), permissions=["change"])
    def refuse_sign_in(self, request: HttpRequest, users: QuerySet[User]) -> None:
        self._set_active(request, users, is_active=False)

    def _set_active(
        self, request: HttpRequest, users: QuerySet[User], *, is_active: bool
    ) -> None:
        """Change the accounts that the person may change, except their own."""
        chosen = [
            user
            for user in users
            if user != request.user and self.has_change_permission(request, user)
        ]
        for user in chosen:
            user.is_active = is_active
            user.save(update_fields=["is_active"])
        done = len(chosen)
        text = ngettext("Changed %(count)d user.", "Changed %(count)d users.", done)
        self.message_user(request, text % {"count": done}, messages.SUCCESS)
        if left := len(users) - done:
            text = ngettext(
                "%(count)d user was not changed: you cannot change this account here.",
                "%(count)d users were not changed: you cannot change these accounts "
                "here.",
                left,
            )
            self.message_user(request, text % {"count": left}, messages.WARNING)

    @admin.display(description=_("Name"), ordering="first_name")
    def full_name(self, user: User) -> str:
        return user.get_full_name()

    @admin.display(description=_("Role"), ordering="is_superuser")
    def role(self, user: User) -> str:
        """The most that the user can do."""
        if is_service_account(user):
            return (
                gettext("Service account")
                if user.is_active
                else gettext("Disabled service account")
            )
        if not user.is_active:
            return gettext("Cannot sign in")
        if user.is_superuser:
            return gettext("Superuser")
        return gettext("Administration") if user.is_staff else gettext("User")

    @admin.display(description=_("Last sign-in"), ordering="last_login")
    def last_seen(self, user: User) -> SafeString | str:
        return render_time_ago(user.last_login)

    @admin.display(description=_("Last API use"), ordering="token_used_at")
    def token_use(self, user: Any) -> SafeString | str:
        return render_time_ago(user.token_used_at)

    @admin.display(description=_("Description"))
    def description(self, user: User) -> str:
        """What a service account does, for users who can only view it."""
        return user.service_account.description if is_service_account(user) else ""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return users with their service account, and when a token was last used."""
        rows: QuerySet[Any] = super().get_queryset(request)
        used = Max("api_tokens__last_used_at")  # the tokens of `runs`
        rows = rows.select_related("service_account").annotate(token_used_at=used)
        return rows

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the fields of a person or of a service account."""
        if obj is None and adds_service_account(request):
            return NEW_FIELDSETS
        if obj is not None and is_service_account(obj):
            return EDIT_FIELDSETS
        return super().get_fieldsets(request, obj)

    def save_model(
        self, request: HttpRequest, obj: Any, form: Any, change: bool
    ) -> None:
        """Save the description of a service account, too."""
        if isinstance(form, NewServiceAccountForm):
            description = form.cleaned_data["description"]
            create_service_account(obj, description=description)
            return
        super().save_model(request, obj, form, change)
        if isinstance(form, EditServiceAccountForm):
            form.save_description()

    def user_change_password(
        self, request: HttpRequest, id: str, form_url: str = ""
    ) -> HttpResponse:
        """Refuse to set the password of a service account, which cannot sign in."""
        user = self.get_object(request, id)
        if user is not None and is_service_account(user):
            raise PermissionDenied
        answer: HttpResponse = super().user_change_password(request, id, form_url)
        return answer

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **more: Any
    ) -> Any:
        """Hide “Save and continue” for a new user: saving opens their page anyway."""
        context["show_save_and_continue"] = context.get("original") is not None
        return super().render_change_form(request, context, *args, **more)

    def formfield_for_manytomany(
        self, db_field: Any, request: HttpRequest, **more: Any
    ) -> Any:
        """Show groups as checkboxes."""
        if db_field.name == "groups":
            more["widget"] = forms.CheckboxSelectMultiple
            more["queryset"] = list_grantable_groups(acting_user(request))
        return super().formfield_for_manytomany(db_field, request, **more)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Let only superusers appoint superusers and open the administration."""
        if acting_user(request).is_superuser:
            return self.readonly_fields
        return (*self.readonly_fields, "is_staff", "is_superuser")

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **more: Any
    ) -> Any:
        """Offer only the permissions that have an effect and may be granted."""
        if obj is None and adds_service_account(request):
            more["form"] = NewServiceAccountForm
        elif obj is not None and is_service_account(obj):
            more["form"] = EditServiceAccountForm
        form = super().get_form(request, obj, change=change, **more)
        if "user_permissions" in form.base_fields:
            held = obj.user_permissions if obj else None
            field = build_permissions_field(
                held, _("Additional permissions"), by=acting_user(request)
            )
            field.help_text = SUPERUSER_HELP
            form.base_fields["user_permissions"] = field
        return form


class UserGroupAdmin(RankedAdmin, GroupAdmin):
    """Groups that share agents, tools, prompts and providers."""

    noun = "group"
    filter_horizontal = ()
    list_display = ("name", "members")
    readonly_fields = ("all_members",)

    @admin.display(description=_("Users"))
    def all_members(self, group: Group) -> SafeString | str:
        return render_members(group)

    @admin.display(description=_("Members"), empty_value=render_muted(_("no members")))
    def members(self, group: Group) -> str:
        """The first few names."""
        names = [get_person_name(user) for user in group.user_set.all()]
        listed, more = ", ".join(names[:5]), len(names) - 5
        if more <= 0:
            return listed
        return ngettext(
            "%(names)s and %(count)d more", "%(names)s and %(count)d more", more
        ) % {"names": listed, "count": more}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)
        return rows.prefetch_related("user_set")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Show the members to those who may not change them, too."""
        members = "users" if self._may_change_members(request, obj) else "all_members"
        shown = obj is not None or members == "users"
        return (
            (None, {"fields": ["name"]}),
            *([(_("Members"), {"fields": [members]})] if shown else []),
            (_("Administration"), {"fields": ["permissions"], "classes": ["rights"]}),
        )

    def _may_change_members(self, request: HttpRequest, group: Group | None) -> bool:
        may_save = (
            self.has_change_permission(request, group)
            if group
            else self.has_add_permission(request)
        )
        return may_save and may_change_members(acting_user(request), group)

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **more: Any
    ) -> Any:
        """Offer only the permissions and members that the user may change."""
        more["fields"] = [
            name
            for name in flatten_fieldsets(self.get_fieldsets(request, obj))
            if name in ("name", "permissions")
        ]
        form = super().get_form(request, obj, change=change, **more)
        if "permissions" in form.base_fields:
            held = obj.permissions if obj else None
            form.base_fields["permissions"] = build_permissions_field(
                held, _("Permissions of members"), by=acting_user(request)
            )
        if self._may_change_members(request, obj):
            form.base_fields["users"] = build_members_field(
                obj, by=acting_user(request)
            )
        return form

    def save_related(
        self, request: HttpRequest, form: Any, formsets: Any, change: bool
    ) -> None:
        super().save_related(request, form, formsets, change)
        if "users" in form.cleaned_data:
            chosen = form.cleaned_data["users"]
            save_members(form.instance, chosen, by=acting_user(request))
