"""Restores of the site from a backup; an unconfirmed one pauses the site."""

from typing import Self

from django.db import models
from django.db.models.functions import Now


class SiteRestoreQuerySet(models.QuerySet["SiteRestore"]):
    def unconfirmed(self) -> Self:
        return self.filter(confirmed_at=None)


class SiteRestore(models.Model):
    """One restore, inserted in the transaction that replaces the data."""

    backup_at = models.DateTimeField()
    """When the backup was created."""
    restored_at = models.DateTimeField(db_default=Now())
    confirmed_at = models.DateTimeField(null=True)
    """When an administrator chose what continues; until then the site is paused."""
    confirmed_by = models.CharField(max_length=150, db_default="", default="")

    objects = SiteRestoreQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.backup_at:%Y-%m-%d %H:%M}"
