"""The admin of what somebody owns."""

from typing import Any

from django import forms
from django.db.models import QuerySet
from django.http import HttpRequest

from tools.admin_plain import PlainAdmin
from tools.generic import ModelForm


class OwnedAdmin(PlainAdmin):
    """Shows what a person may see; lets only owners and superusers change it."""

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
        """Nothing is deleted: what a run refers to is archived."""
        return False

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
