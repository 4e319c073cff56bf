"""The admin of what somebody owns."""

from typing import Any, NamedTuple

from django import forms
from django.contrib import messages
from django.db.models import ProtectedError, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html

from tools.admin_plain import PlainAdmin
from tools.generic import ModelForm
from tools.services import delete_unused, users_of


class OwnedAdmin(PlainAdmin):
    """Shows what a person may see; lets only owners and superusers change it."""

    goes_when_unused = False
    """Whether a row that nothing refers to can be deleted; the others are archived."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the visible rows."""
        rows: QuerySet[Any] = self.model.objects.visible_to(request.user)
        return rows

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether the person may change `obj`, or some row at all."""
        allowed = super().has_change_permission(request, obj)
        if obj is None or not allowed:
            return allowed
        return bool(self.model.objects.editable_by(request.user).filter(pk=obj.pk))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether the person may delete this row; never several at once."""
        return (
            self.goes_when_unused
            and obj is not None
            and self.has_change_permission(request, obj)
        )

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Name what refers to the row, as far as the person may see it."""
        (thing,) = objs
        users = seen_users(thing, request.user)
        named = [format_html('<a href="{}">{}</a>, {}', *user) for user in users.seen]
        if users.more:
            named.append(format_html("{} more that you may not see", users.more))
        return [str(thing)], {}, set(), named

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: Any = None
    ) -> HttpResponse:
        """Ask, then delete; say so where something began to refer to it meanwhile."""
        try:
            return super().delete_view(request, object_id, extra_context)
        except ProtectedError:
            told = f"This {self.noun} was not deleted: by now something uses it."
            self.message_user(request, told, messages.ERROR)
            return redirect(f"admin:tools_{self.opts.model_name}_change", object_id)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Delete it, and take it out of archived tools."""
        delete_unused(obj, by=request.user)  # type: ignore[arg-type]  # staff

    def formfield_for_manytomany(
        self, db_field: Any, request: HttpRequest, **more: Any
    ) -> Any:
        """Offer the groups a person is in, all to superusers."""
        user: Any = request.user
        if db_field.name == "groups":
            more["widget"] = forms.CheckboxSelectMultiple
            if not user.is_superuser:
                more["queryset"] = user.groups.all()
        return super().formfield_for_manytomany(db_field, request, **more)

    def save_model(
        self, request: HttpRequest, obj: Any, form: ModelForm, change: bool
    ) -> None:
        """Give a new row to the person who made it."""
        if not change:
            obj.owner = request.user
        super().save_model(request, obj, form, change)


class _User(NamedTuple):
    url: str
    name: str
    noun: str


class Users(NamedTuple):
    """What refers to a row."""

    seen: list[_User]
    more: int
    """How many the person may not see."""


def seen_users(thing: Any, person: Any) -> Users:
    """Return the tools and servers that refer to `thing`, as `person` sees them."""
    seen, more = [], 0
    for user in users_of(thing):
        rows: Any = type(user)._default_manager
        if not rows.visible_to(person).filter(pk=user.pk).exists():
            more += 1
            continue
        url = reverse(f"admin:tools_{user._meta.model_name}_change", args=[user.pk])
        seen.append(_User(url, user.name, str(user._meta.verbose_name)))
    return Users(seen, more)
