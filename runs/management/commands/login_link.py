"""`login_link USERNAME`: create a one-time login link and print its URL."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from runs.management.site_command import SiteCommand
from runs.management.users import get_active_user
from runs.services.accounts.login_link import (
    CannotSignIn,
    build_login_url,
    create_login_link,
)


class Command(SiteCommand):
    help = "Print a link that signs a user in once, within 15 minutes."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")

    def handle(self, *_: Any, username: str, **__: Any) -> None:
        try:
            token = create_login_link(get_active_user(username))
        except CannotSignIn as refused:
            raise CommandError(str(refused)) from None
        self.stdout.write(build_login_url(token))
