"""`AuditEntry`: one change or decision, kept as it was written."""

from typing import Any, NoReturn

from django.db import models
from django.utils import timezone


class AppendOnly(Exception):
    """Somebody tried to change what was written."""

    def __init__(self) -> None:
        super().__init__("The audit log is written once and never changed.")


class AuditQuerySet(models.QuerySet["AuditEntry"]):
    """Rows that can be read and added only."""

    def update(self, **changes: Any) -> NoReturn:
        """Refuse."""
        raise AppendOnly

    def delete(self) -> NoReturn:
        """Refuse."""
        raise AppendOnly

    def about(self, thing: models.Model, *, noun: str) -> "AuditQuerySet":
        """Return what became of one thing, the newest first."""
        return self.filter(noun=noun, thing_number=thing.pk)


class AuditEntry(models.Model):
    """Who did what to what, when, and how it was before and after."""

    class Way(models.TextChoices):
        """How it reached us."""

        PAGE = "page", "Page"
        API = "api", "API"
        SERVER = "server", "Server"

    at = models.DateTimeField(default=timezone.now, db_index=True)
    by = models.CharField(max_length=150, blank=True)
    """The person's name at that time; empty for commands and workers."""
    by_number = models.BigIntegerField(null=True)
    way = models.CharField(max_length=8, choices=Way, default=Way.SERVER)
    action = models.CharField(max_length=30)
    """A verb in the past: made, changed, approved …"""
    noun = models.CharField(max_length=30)
    """What kind of thing: tool, credential, agent, run …"""
    thing = models.CharField(max_length=200)
    """Its name at that time; the thing itself may be gone."""
    thing_number = models.BigIntegerField(null=True)
    changes = models.JSONField(default=dict)
    """`{field: [before, after]}`, secrets masked."""
    note = models.TextField(blank=True)
    """The reason a person gave."""

    objects = AuditQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        verbose_name_plural = "audit log"
        indexes = [
            models.Index(fields=["noun", "thing_number"], name="audit_thing"),
            models.Index(fields=["by"], name="audit_by"),
        ]

    def __str__(self) -> str:
        return f"{self.by or 'The server'} {self.action} {self.noun} {self.thing}"

    def save(self, *args: Any, **more: Any) -> None:
        """Store a new row; refuse to change one."""
        if not self._state.adding:
            raise AppendOnly
        super().save(*args, **more)

    def delete(self, *args: Any, **more: Any) -> NoReturn:
        """Refuse."""
        raise AppendOnly
