"""`login_link USERNAME`: make a one-time login link; its URL is the last line."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from runs.management.people import user_named
from runs.services.login_link import address_of_link, make_login_link


class Command(BaseCommand):
    """Make a link and print it."""

    help = "Make a link that signs a user in once, within 15 minutes."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the user's name."""
        parser.add_argument("username")

    def handle(self, *_: Any, username: str, **__: Any) -> None:
        """Make the link and print its URL."""
        self.stdout.write(address_of_link(make_login_link(user_named(username))))
