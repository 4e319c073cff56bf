"""Public links to single runs."""

from django.conf import settings
from django.db import models

from runs.models.runs import Run


class RunShare(models.Model):
    """A read-only link to one run; only its hash is stored."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="shares")
    digest = models.CharField(max_length=64, unique=True)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+"
    )
    """The link stops working if this user may no longer see the run."""
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)
    open_count = models.PositiveIntegerField(default=0)
    seen_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"link to run {self.run_id}"
