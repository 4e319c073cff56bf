"""With whom a definition is shared: nobody, some groups, or everyone."""

from typing import Any

from django import forms
from django.contrib.auth.models import Group
from django.db.models import Q, QuerySet

from tools.ownership import Owned, Visibility


def offer_groups(form: forms.BaseForm, thing: Owned) -> None:
    """Add the field `groups`: those of the owner, all for a superuser."""
    field: Any = forms.ModelMultipleChoiceField(
        queryset=groups_for(thing),
        required=False,
        label="Groups",
        widget=forms.CheckboxSelectMultiple,
    )
    field.is_needed = True  # where the choice above says so
    form.fields["groups"] = field
    if thing.pk:
        form.initial["groups"] = list(thing.groups.values_list("pk", flat=True))


def groups_for(thing: Owned) -> QuerySet[Group]:
    """Return the groups a definition may be shared with, and those it is."""
    owner = thing.owner
    if owner.is_superuser:
        return Group.objects.order_by("name")
    mine = Q(pk__in=owner.groups.values("pk"))
    if thing.pk:
        mine |= Q(pk__in=thing.groups.values("pk"))
    return Group.objects.filter(mine).order_by("name")


def check_groups(form: forms.BaseForm, given: dict[str, Any]) -> None:
    """Ask for a group where one is meant."""
    if given.get("visibility") != Visibility.GROUPS or given.get("groups"):
        return
    groups: Any = form.fields["groups"]
    if groups.queryset.exists():
        form.add_error("groups", "Choose at least one group.")
    else:
        form.add_error(
            "visibility",
            "You are in no group. An administrator makes groups and puts people in.",
        )


def share_with(thing: Owned, groups: QuerySet[Group]) -> None:
    """Store the groups where they are meant, else none."""
    shared = thing.visibility == Visibility.GROUPS
    thing.groups.set(groups if shared else [])
