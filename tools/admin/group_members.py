"""The members of a group, on the page of the group."""

from collections.abc import Iterable
from typing import Any

from django import forms
from django.contrib.auth.models import Group, User
from django.db.models import Q, QuerySet
from django.utils.html import format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from tools.admin.grantable import list_administrable_users, may_administer
from tools.typed_generics import ModelMultipleChoiceField


class MembersField(ModelMultipleChoiceField):
    """Users as checkboxes."""

    def label_from_instance(self, obj: Any) -> str:
        return describe_member(obj)


def may_change_members(actor: User, group: Group | None) -> bool:
    """Whether `actor` could change the groups of users on their own pages, too."""
    return actor.has_perm("auth.change_user") and (
        group is None or may_administer(actor, group)
    )


def list_changeable_members(actor: User, group: Group | None) -> QuerySet[User]:
    """Return whom `actor` may add to the group or remove; disabled users only leave."""
    offered = Q(is_active=True)
    if group is not None:
        offered |= Q(groups=group)
    users = list_administrable_users(actor).filter(offered).distinct()
    return users.order_by("first_name", "last_name", "username")


def build_members_field(group: Group | None, *, by: User) -> MembersField:
    """Return the field; members with further permissions are named below it."""
    rows = list_changeable_members(by, group)
    field = MembersField(
        rows, widget=forms.CheckboxSelectMultiple, label=_("Users"), required=False
    )
    if group is not None:
        field.initial = [user.pk for user in rows if user in group.user_set.all()]
        fixed = group.user_set.exclude(pk__in=rows.values("pk"))
        if names := ", ".join(map(describe_member, fixed)):
            field.help_text = gettext(
                "Also members, with permissions that you do not have: %(names)s"
            ) % {"names": names}
    return field


def save_members(group: Group, wanted: Iterable[User], *, by: User) -> None:
    """Add and remove members among those whom `by` may change."""
    changeable = set(list_changeable_members(by, group))
    chosen, members = set(wanted) & changeable, set(group.user_set.all())
    group.user_set.remove(*(members & changeable - chosen))
    group.user_set.add(*(chosen - members))


def render_members(group: Group) -> SafeString | str:
    """Return the list of all members, to read."""
    users = group.user_set.order_by("first_name", "last_name", "username")
    names = [(describe_member(user),) for user in users]
    return format_html_join(mark_safe("<br>"), "{}", names) or gettext("no members")


def describe_member(user: User) -> str:
    """Return full name and user name, and whether the user is disabled."""
    name = user.get_full_name()
    message = f"{name} ({user.username})" if name else user.username
    if user.is_active:
        return message
    return gettext("%(user)s, cannot sign in") % {"user": message}
