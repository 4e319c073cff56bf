"""Traces that other programs sent, from which imported runs are built."""

from django.conf import settings
from django.db import models

from runs.models.runs import Run


class ImportedTrace(models.Model):
    """A trace of another program; its run is built again when spans arrive."""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+"
    )
    trace_id = models.CharField(max_length=32)
    """Hex digits, as the program chose them."""
    run = models.OneToOneField(
        Run, null=True, on_delete=models.CASCADE, related_name="imported_trace"
    )
    """Null only in the transaction that creates both."""

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "trace_id"], name="imported_trace_once"
            )
        ]

    def __str__(self) -> str:
        return self.trace_id


class ImportedSpan(models.Model):
    """A span of an agent, a model call or a tool call."""

    trace = models.ForeignKey(
        ImportedTrace, on_delete=models.CASCADE, related_name="spans", db_index=False
    )
    span_id = models.CharField(max_length=16)
    body = models.JSONField()
    """A `runs.services.telemetry.importing.spans.ReceivedSpan`."""
    number = models.PositiveIntegerField(null=True)
    """The model call that was built from it."""
    received_at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["trace", "span_id"], name="imported_span_once"
            )
        ]

    def __str__(self) -> str:
        return self.span_id
