"""What belongs to one person: preferences, API tokens, login links."""

from django.conf import settings
from django.db import models


class Preferences(models.Model):
    """How one person wants to see the pages."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="preferences"
    )
    theme = models.CharField(max_length=8, default="system")
    """system, light or dark."""
    time_zone = models.CharField(max_length=60, blank=True)
    hides_first_steps = models.BooleanField(default=False)

    def __str__(self) -> str:
        return f"preferences of {self.user_id}"


class ApiToken(models.Model):
    """A token for the API; only its hash is stored."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens"
    )
    name = models.CharField(max_length=120, blank=True)
    digest = models.CharField(max_length=64, unique=True)
    """SHA-256 of the token; it has 256 random bits, so a slow hash adds nothing."""
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.name or f"token {self.pk}"


class LoginLink(models.Model):
    """A link that signs its user in once, within 15 minutes; only its hash is kept."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+"
    )
    digest = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"link for {self.user_id}"
