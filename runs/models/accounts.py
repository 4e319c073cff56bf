"""Preferences, API tokens and login links of a user."""

from django.conf import settings
from django.db import models


class Preferences(models.Model):
    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="preferences"
    )
    theme = models.CharField(max_length=8, default="system")
    """`system`, `light` or `dark`."""
    language = models.CharField(max_length=16, blank=True)
    """Language code of the pages; empty for the browser's language."""
    time_zone = models.CharField(max_length=60, blank=True)
    hides_first_steps = models.BooleanField(default=False)

    def __str__(self) -> str:
        return f"preferences of {self.user_id}"


class ApiToken(models.Model):
    """An API token; only its hash is stored."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens"
    )
    name = models.CharField(max_length=120, blank=True)
    digest = models.CharField(max_length=64, unique=True)
    """SHA-256 of the token. It has 256 random bits, so a slow hash adds nothing."""
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.name or f"token {self.pk}"


class LoginLink(models.Model):
    """A link that signs its user in once, in 15 minutes; only its hash is stored."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+"
    )
    digest = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"link for {self.user_id}"
