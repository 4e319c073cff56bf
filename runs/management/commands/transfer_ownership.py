"""`transfer_ownership FROM TO`: hand over what somebody owns."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from runs.management.site_command import SiteCommand
from runs.management.users import get_user
from runs.services.accounts.transfer import (
    CannotTransfer,
    list_owned_rows,
    transfer_ownership,
)


class Command(SiteCommand):
    help = "Make TO the owner of all definitions and schedules of FROM."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("owner", metavar="FROM")
        parser.add_argument("to", metavar="TO")
        parser.add_argument(
            "--dry-run", action="store_true", help="Only list what FROM owns."
        )

    def handle(self, *_: Any, owner: str, to: str, dry_run: bool, **__: Any) -> None:
        user, receiver = get_user(owner), get_user(to)
        for rows in list_owned_rows(user):
            note = "" if rows.is_moved else " (not transferred)"
            self.stdout.write(f"{rows.label}{note}: {', '.join(rows.names)}")
        if dry_run:
            return
        try:
            count = transfer_ownership(user, receiver, by=None)
        except CannotTransfer as refused:
            raise CommandError(str(refused)) from None
        self.stdout.write(f"{count} objects now belong to {receiver.username}.")
