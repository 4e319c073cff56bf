"""Service accounts: users that are programs."""

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models


class ServiceAccount(models.Model):
    """Marks a user as a program: it has API tokens, and cannot sign in."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="service_account",
    )
    description = models.CharField(max_length=200, blank=True)
    """What the program does, and whom to ask about it."""

    def __str__(self) -> str:
        return self.user.get_username()


def is_service_account(user: User) -> bool:
    return hasattr(user, "service_account")
