"""One entry of the audit log."""

from typing import Any, NoReturn

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class AppendOnlyViolation(Exception):
    """An attempt to change or delete an entry."""

    def __init__(self) -> None:
        super().__init__("Entries of the audit log cannot be changed or deleted.")


class AuditQuerySet(models.QuerySet["AuditEntry"]):
    """Entries that can only be read and added."""

    def update(self, **changes: Any) -> NoReturn:
        raise AppendOnlyViolation

    def delete(self) -> NoReturn:
        raise AppendOnlyViolation

    def about(self, thing: models.Model, *, noun: str) -> "AuditQuerySet":
        """Return the entries about one object, newest first."""
        return self.filter(noun=noun, thing_number=thing.pk)


class AuditEntry(models.Model):
    """Who did what, when, and the values before and after."""

    class Way(models.TextChoices):
        """Where the change was made."""

        PAGE = "page", _("Page")
        API = "api", _("API")
        SERVER = "server", _("Server")
        LINK = "link", _("E-mail link")

    at = models.DateTimeField(default=timezone.now, db_index=True)
    by = models.CharField(max_length=150, blank=True)
    """The user name at that time; empty for commands and workers."""
    by_number = models.BigIntegerField(null=True)
    way = models.CharField(max_length=8, choices=Way, default=Way.SERVER)
    action = models.CharField(max_length=30)
    """A code: made, changed, approved …"""
    noun = models.CharField(max_length=30)
    """A code for the type of object: tool, credential, agent, run …"""
    thing = models.CharField(max_length=200)
    """The name of the object at that time; the object may be gone."""
    thing_number = models.BigIntegerField(null=True)
    changes = models.JSONField(default=dict)
    """`{field: [before, after]}`, secrets masked."""
    note = models.TextField(blank=True)
    """The reason given by the user."""

    objects = AuditQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        verbose_name = _("audit log entry")
        verbose_name_plural = _("audit log")
        indexes = [
            models.Index(fields=["noun", "thing_number"], name="audit_thing"),
            models.Index(fields=["by"], name="audit_by"),
        ]

    def __str__(self) -> str:
        return self.thing

    def save(self, *args: Any, **more: Any) -> None:
        if not self._state.adding:
            raise AppendOnlyViolation
        super().save(*args, **more)

    def delete(self, *args: Any, **more: Any) -> NoReturn:
        raise AppendOnlyViolation
