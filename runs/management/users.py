"""Users that commands act for."""

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import CommandError


def get_user(username: str) -> User:
    """Return the user of that name; raise `CommandError` if there is none."""
    user = User.objects.filter(username=username).first()
    if user is None:
        raise CommandError(f"User {username!r} not found.")
    return user


def get_active_user(username: str) -> User:
    """Return the user of that name; raise `CommandError` if they may not sign in."""
    user = get_user(username)
    if not user.is_active:
        raise CommandError(f"User {username!r} is not active.")
    return user


def get_first_superuser() -> User:
    """Return the first active superuser; raise `CommandError` if there is none."""
    user = User.objects.filter(is_superuser=True, is_active=True).order_by("pk").first()
    if user is None:
        raise CommandError(
            "There is no administrator yet. Create one with "
            f"`{settings.MANAGE_COMMAND} bootstrap`, or name a user with --owner."
        )
    return user


def get_owner(username: str | None) -> User:
    """Return the user that `--owner` names, or else the first superuser."""
    return get_first_superuser() if username is None else get_active_user(username)
