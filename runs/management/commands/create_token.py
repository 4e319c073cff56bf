"""`create_token USERNAME`: create an API token and print it on the last line."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from runs.management.users import get_active_user
from runs.services.accounts.tokens import create_token


class Command(BaseCommand):
    help = "Create an API token for a user and print it on the last line."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--name", default="", help="What the token is for.")

    def handle(self, *_: Any, username: str, name: str, **__: Any) -> None:
        self.stdout.write(create_token(get_active_user(username), name))
