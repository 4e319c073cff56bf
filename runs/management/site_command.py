"""The base of our commands."""

from django.core.management.base import BaseCommand


class SiteCommand(BaseCommand):
    """A command that starts without Django's checks of the code.

    They load every page, which takes longer than most commands. `manage.py check` and
    the tests run them.
    """

    requires_system_checks = []
