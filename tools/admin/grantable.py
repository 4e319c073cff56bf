"""Which permissions a user may pass on, and whose account they may change.

Nobody grants a permission that they do not hold, and nobody changes an account or group
with such a permission: a new password would be enough to use it.
"""

from django.contrib.auth.models import Group, Permission, User
from django.db.models import Q, QuerySet

Grantee = User | Group


def list_held_permissions(holder: Grantee) -> QuerySet[Permission]:
    """Return the permissions of a user or group, also while the user is inactive."""
    if isinstance(holder, Group):
        return Permission.objects.filter(group=holder)
    if holder.is_superuser:
        return Permission.objects.all()
    held = Q(user=holder) | Q(group__user=holder)
    return Permission.objects.filter(held).distinct()


def may_administer(actor: User, target: Grantee) -> bool:
    """Whether `target` holds nothing that `actor` does not hold."""
    if actor.is_superuser:
        return True
    if isinstance(target, User) and target.is_superuser:
        return False
    held = list_held_permissions(actor).values("pk")
    return not list_held_permissions(target).exclude(pk__in=held).exists()


def may_change_account(actor: User, target: User | None = None) -> bool:
    """Whether `actor` may change accounts, or this one, as on the pages of users."""
    if not (
        actor.is_superuser or actor.is_staff and actor.has_perm("auth.change_user")
    ):
        return False
    return target is None or may_administer(actor, target)


def list_administrable_users(actor: User) -> QuerySet[User]:
    if actor.is_superuser:
        return User.objects.all()
    held = list_held_permissions(actor).values("pk")
    beyond = Permission.objects.exclude(pk__in=held).values("pk")
    stronger = Q(user_permissions__in=beyond) | Q(groups__permissions__in=beyond)
    return User.objects.filter(is_superuser=False).exclude(
        pk__in=User.objects.filter(stronger).values("pk")
    )


def list_grantable_groups(actor: User) -> QuerySet[Group]:
    """Return the groups without a permission that `actor` does not hold."""
    if actor.is_superuser:
        return Group.objects.all()
    held = list_held_permissions(actor).values("pk")
    beyond = Permission.objects.exclude(pk__in=held)
    return Group.objects.exclude(permissions__in=beyond)
