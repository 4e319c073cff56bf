"""Putting a definition away, and taking it out again; what runs refer to stays."""

from django.utils import timezone

from tools.ownership import Owned


def archive_definition(thing: Owned) -> None:
    """Hide `thing` from lists and choices; what has run stays."""
    _set(thing, away=True)


def unarchive_definition(thing: Owned) -> None:
    """Offer `thing` again."""
    _set(thing, away=False)


def _set(thing: Owned, *, away: bool) -> None:
    thing.archived_at = timezone.now() if away else None
    thing.save(update_fields=["archived_at", "updated_at"])
