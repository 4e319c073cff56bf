"""Sharing of a definition: with nobody, with groups, or with everyone."""

from typing import Any

from django import forms
from django.contrib.auth.models import Group
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from tools.ownership import Owned, Visibility


def add_groups_field(form: forms.BaseForm, thing: Owned) -> None:
    """Add the field `groups`, with the owner's groups, or all for a superuser."""
    field: Any = forms.ModelMultipleChoiceField(
        queryset=shareable_groups(thing),
        required=False,
        label=gettext_lazy("Groups"),
        widget=forms.CheckboxSelectMultiple,
    )
    field.is_needed = True  # required by the visibility
    form.fields["groups"] = field
    if thing.pk:
        form.initial["groups"] = list(thing.groups.values_list("pk", flat=True))


def shareable_groups(thing: Owned) -> QuerySet[Group]:
    """Return the groups a definition may be or already is shared with."""
    owner = thing.owner
    if owner.is_superuser:
        return Group.objects.order_by("name")
    mine = Q(pk__in=owner.groups.values("pk"))
    if thing.pk:
        mine |= Q(pk__in=thing.groups.values("pk"))
    return Group.objects.filter(mine).order_by("name")


def require_groups(form: forms.BaseForm, given: dict[str, Any]) -> None:
    if given.get("visibility") != Visibility.GROUPS or given.get("groups"):
        return
    groups: Any = form.fields["groups"]
    if groups.queryset.exists():
        form.add_error("groups", _("Select at least one group."))
    else:
        form.add_error(
            "visibility",
            _(
                "You are not a member of any group. An administrator can create groups "
                "and add members."
            ),
        )


def save_shared_groups(thing: Owned, groups: QuerySet[Group]) -> None:
    """Store the groups if the visibility is groups, otherwise none."""
    shared = thing.visibility == Visibility.GROUPS
    thing.groups.set(groups if shared else [])
