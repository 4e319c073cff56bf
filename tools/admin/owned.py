"""The admin of models with an owner."""

from typing import Any, NamedTuple

from django import forms
from django.contrib import admin, messages
from django.db.models import ProtectedError, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from tools.admin.base import ProductAdmin
from tools.definition.delete_unused import delete_unused, find_referrers
from tools.ownership import Visibility
from tools.typed_generics import ModelForm


class OwnedAdmin(ProductAdmin):
    """Shows visible rows; only owners and superusers can change them."""

    can_delete_when_unused = False
    """Whether unused rows can be deleted; others are archived."""

    @admin.action(
        description=gettext_lazy("Share with everyone"), permissions=["change"]
    )
    def share(self, request: HttpRequest, rows: QuerySet[Any]) -> None:
        self.change_rows(request, rows, visibility=Visibility.EVERYONE)

    @admin.action(description=gettext_lazy("Stop sharing"), permissions=["change"])
    def unshare(self, request: HttpRequest, rows: QuerySet[Any]) -> None:
        self.change_rows(request, rows, visibility=Visibility.PRIVATE)

    def change_rows(
        self, request: HttpRequest, rows: QuerySet[Any], **values: object
    ) -> None:
        """Change the selected rows that the person may change; say how many."""
        mine = [row for row in rows if self.has_change_permission(request, row)]
        for row in mine:
            for name, value in values.items():
                setattr(row, name, value)
            row.save()
        text = ngettext("Changed %(count)d row.", "Changed %(count)d rows.", len(mine))
        self.message_user(request, text % {"count": len(mine)}, messages.SUCCESS)
        if left := len(rows) - len(mine):
            text = ngettext(
                "%(count)d row was not changed: you are not its owner.",
                "%(count)d rows were not changed: you are not their owner.",
                left,
            )
            self.message_user(request, text % {"count": left}, messages.WARNING)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = self.model.objects.visible_to(request.user)
        return rows

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether the person may change `obj`, or any row if None."""
        allowed = super().has_change_permission(request, obj)
        if obj is None or not allowed:
            return allowed
        return bool(self.model.objects.editable_by(request.user).filter(pk=obj.pk))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether the person may delete this row; never several at once."""
        return (
            self.can_delete_when_unused
            and obj is not None
            and self.has_change_permission(request, obj)
        )

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """List the rows that refer to it, as far as the person may see them."""
        (thing,) = objs
        users = find_visible_referrers(thing, request.user)
        named: list[str] = [
            format_html('<a href="{}">{}</a>, {}', *user) for user in users.visible
        ]
        if users.hidden_count:
            named.append(
                ngettext(
                    "%(count)d more that you cannot see",
                    "%(count)d more that you cannot see",
                    users.hidden_count,
                )
                % {"count": users.hidden_count}
            )
        return [str(thing)], {}, set(), named

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: Any = None
    ) -> HttpResponse:
        """Confirm, then delete, unless something began to refer to it meanwhile."""
        try:
            return super().delete_view(request, object_id, extra_context)
        except ProtectedError:
            message = _("Not deleted: it is in use now.")
            self.message_user(request, message, messages.ERROR)
            return redirect(f"admin:tools_{self.opts.model_name}_change", object_id)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Delete the row and remove it from archived tools."""
        delete_unused(obj, by=request.user)  # type: ignore[arg-type]  # staff

    def formfield_for_manytomany(
        self, db_field: Any, request: HttpRequest, **more: Any
    ) -> Any:
        """Offer the person's own groups, or all to superusers."""
        user: Any = request.user
        if db_field.name == "groups":
            more["widget"] = forms.CheckboxSelectMultiple
            if not user.is_superuser:
                more["queryset"] = user.groups.all()
        return super().formfield_for_manytomany(db_field, request, **more)

    def save_model(
        self, request: HttpRequest, obj: Any, form: ModelForm, change: bool
    ) -> None:
        """Make the person the owner of a new row."""
        if not change:
            obj.owner = request.user
        super().save_model(request, obj, form, change)


class _Referrer(NamedTuple):
    url: str
    name: str
    noun: str


class Referrers(NamedTuple):
    """The rows that refer to one row."""

    visible: list[_Referrer]
    hidden_count: int
    """Rows the person may not see."""


def find_visible_referrers(thing: Any, person: Any) -> Referrers:
    """Return the tools and servers that refer to `thing`."""
    seen, more = [], 0
    for user in find_referrers(thing):
        rows: Any = type(user)._default_manager
        if not rows.visible_to(person).filter(pk=user.pk).exists():
            more += 1
            continue
        url = reverse(f"admin:tools_{user._meta.model_name}_change", args=[user.pk])
        seen.append(_Referrer(url, user.name, str(user._meta.verbose_name)))
    return Referrers(seen, more)
