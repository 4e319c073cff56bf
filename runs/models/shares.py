"""Links that show one run to whoever has them, for a while."""

from django.conf import settings
from django.db import models

from runs.models.runs import Run


class RunShare(models.Model):
    """A link to one run, read-only; only its hash is stored."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="shares")
    digest = models.CharField(max_length=64, unique=True)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+"
    )
    """The link ends when this person may not see the run any more."""
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)
    seen = models.PositiveIntegerField(default=0)
    """How often it was opened."""
    seen_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"link to run {self.run_id}"
