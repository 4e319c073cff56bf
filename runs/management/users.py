"""The person a command is told to act for."""

from django.contrib.auth.models import User
from django.core.management.base import CommandError


def user_named(username: str) -> User:
    """Return the active user of that name; end the command with a sentence if none."""
    user = User.objects.filter(username=username).first()
    if user is None:
        raise CommandError(f"There is no user {username!r}.")
    if not user.is_active:
        raise CommandError(f"The user {username!r} is not active.")
    return user


def first_operator() -> User:
    """Return the first active superuser; end the command with a sentence if none."""
    user = User.objects.filter(is_superuser=True, is_active=True).order_by("pk").first()
    if user is None:
        raise CommandError(
            "There is no administrator yet. Make one with `manage.py bootstrap`, "
            "or name a user with --owner."
        )
    return user
