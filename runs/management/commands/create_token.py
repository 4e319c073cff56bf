"""`create_token USERNAME`: create an API token and print it on the last line."""

from datetime import timedelta
from typing import Any

from django.core.management.base import CommandError, CommandParser

from runs.management.site_command import SiteCommand
from runs.management.users import get_active_user
from runs.models import ApiToken
from runs.models.accounts import USUAL_SCOPES
from runs.services.accounts.tokens import create_token
from runs.services.errors import TooManyTokens

MAX_DAYS = 3650


class Command(SiteCommand):
    help = "Create an API token for a user and print it on the last line."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--name", default="", help="What the token is for.")

        parser.add_argument(
            "--scope",
            action="append",
            choices=ApiToken.Scope.values,
            help="What the token allows, once per scope; "
            "by default read, run and approve.",
        )
        parser.add_argument(
            "--days", type=int, help="When the token expires; by default never."
        )

    def handle(self, *_: Any, username: str, name: str, **more: Any) -> None:
        days = more["days"]
        if days is not None and not 1 <= days <= MAX_DAYS:
            raise CommandError(f"--days must be from 1 to {MAX_DAYS}.")
        try:
            token = create_token(
                get_active_user(username),
                name,
                scopes=dict.fromkeys(more["scope"] or USUAL_SCOPES.split()),
                lifetime=None if days is None else timedelta(days=days),
            )
        except TooManyTokens as error:
            raise CommandError(str(error)) from None
        self.stdout.write(token)
