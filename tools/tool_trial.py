"""What a person tried with a tool, so that they can try it again."""

from django.conf import settings
from django.db import models


class ToolTrial(models.Model):
    """One call from the page of a tool; only who made it sees it.

    The result is not kept. `tools.services.record_trial` deletes the oldest ones.
    """

    tool = models.ForeignKey(
        "tools.Tool", on_delete=models.CASCADE, related_name="trials"
    )
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+"
    )
    at = models.DateTimeField(auto_now_add=True)
    arguments = models.JSONField(null=True)
    """Without what could be a secret; null where they were too long to keep."""
    revision = models.PositiveIntegerField()
    """Of the stored definition at that time."""
    is_unsaved = models.BooleanField(default=False, db_default=False)
    """Whether the typed values differed from the stored ones."""
    is_ok = models.BooleanField(default=False, db_default=False)
    http_status = models.PositiveSmallIntegerField(null=True)
    error_line = models.PositiveIntegerField(null=True)
    """The line of the code that failed."""
    is_stopped = models.BooleanField(default=False, db_default=False)
    """Whether the person stopped the call."""
    seconds = models.FloatField(default=0, db_default=0)

    class Meta:
        indexes = [models.Index(fields=["tool", "by", "-at"], name="tool_trials")]

    def __str__(self) -> str:
        return f"trial of {self.tool_id}"
