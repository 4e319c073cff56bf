"""`create_token USERNAME`: make an API token; the last line printed is the token."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from runs.management.people import user_named
from runs.services.api_token import create_token


class Command(BaseCommand):
    """Make a token and print it, once."""

    help = "Make an API token for a user; the last line printed is the token."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the user's name."""
        parser.add_argument("username")
        parser.add_argument("--name", default="", help="What the token is for.")

    def handle(self, *_: Any, username: str, name: str, **__: Any) -> None:
        """Make the token and print it."""
        self.stdout.write(create_token(user_named(username), name))
