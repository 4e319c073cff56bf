"""Preferences, API tokens and login links of a user."""

from datetime import timedelta

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

USUAL_SCOPES = "read run approve"
"""Those that a token has unless others are chosen."""
SOON = timedelta(days=30)
"""Before it expires, a token can be renewed."""


class Preferences(models.Model):
    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="preferences"
    )
    theme = models.CharField(max_length=8, default="system")
    """`system`, `light` or `dark`."""
    language = models.CharField(max_length=16, blank=True)
    """Language code of the pages; empty for the browser's language."""
    time_zone = models.CharField(max_length=60, blank=True)
    emails_approvals = models.BooleanField(default=False, db_default=False)
    emails_failures = models.BooleanField(default=False, db_default=False)
    emails_schedules = models.BooleanField(default=False, db_default=False)
    """What is sent to the user's address."""
    hides_first_steps = models.BooleanField(default=False)
    run_columns = models.CharField(
        max_length=200, blank=True, default="", db_default=""
    )
    """Columns of the list of runs, separated by commas; empty for the usual ones."""

    def __str__(self) -> str:
        return f"preferences of {self.user_id}"


class ApiToken(models.Model):
    """An API token; only its hash is stored."""

    class Scope(models.TextChoices):
        """What a token allows."""

        READ = "read", _("Read what you can see")
        RUN = "run", _("Start, change and delete runs and conversations")
        APPROVE = "approve", _("Answer approvals")
        BUILD = "build", _("Change agents, tools and other definitions")
        ADMIN = "admin", _("Manage people, tokens and the site")

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens"
    )
    name = models.CharField(max_length=120, blank=True)
    digest = models.CharField(max_length=64, unique=True)
    """SHA-256 of the token. It has 256 random bits, so a slow hash adds nothing."""
    scopes = models.CharField(
        max_length=40, default=USUAL_SCOPES, db_default=USUAL_SCOPES
    )
    """Values of `Scope`, separated by spaces."""
    expires_at = models.DateTimeField(null=True)
    """Null for a token that does not expire."""
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    oauth_code = models.CharField(max_length=32, null=True, unique=True)  # noqa: DJ001
    """Id of the authorization code that a program got the token for."""

    def __str__(self) -> str:
        return self.name or f"token {self.pk}"

    @property
    def scope_labels(self) -> list[str]:
        return [str(scope.label) for scope in self.Scope if self.allows(scope)]

    @property
    def is_expired(self) -> bool:
        return self.expires_at is not None and self.expires_at <= timezone.now()

    @property
    def expires_soon(self) -> bool:
        """Whether it is still valid, but for less than 30 days."""
        if self.expires_at is None or self.is_expired:
            return False
        return self.expires_at - timezone.now() < SOON

    def allows(self, scope: str) -> bool:
        return scope in self.scopes.split()


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
