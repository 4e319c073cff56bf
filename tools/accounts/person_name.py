"""How a person is called on pages and in messages."""

from django.contrib.auth.models import User


def get_person_name(user: User) -> str:
    """Return the full name; without one, the username."""
    return user.get_full_name() or user.get_username()
