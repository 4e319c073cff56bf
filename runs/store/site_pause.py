"""A restored site is paused until an administrator confirms: nothing is executed."""

from runs.models import SiteRestore

NOT_PAUSED_SQL = (
    f"NOT EXISTS (SELECT 1 FROM {SiteRestore._meta.db_table} "  # noqa: S608  # our own name
    "WHERE confirmed_at IS NULL)"
)
"""A condition of the statements that claim something to execute."""


def is_site_paused() -> bool:
    return SiteRestore.objects.unconfirmed().exists()
