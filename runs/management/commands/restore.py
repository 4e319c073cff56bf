"""`restore FILE`: replace the site by a backup; it starts paused."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.db import DatabaseError

from runs.management.commands.prepare import apply_migrations, take_turns
from runs.management.site_command import SiteCommand
from runs.services.backup.restore import restore_backup
from runs.services.errors import BackupError


class Command(SiteCommand):
    help = (
        "Restore a backup. The restored site is paused until an administrator confirms "
        "what continues, on its pages or with confirm_restore."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument(
            "--replace", action="store_true", help="Delete the site that is there."
        )
        parser.add_argument(
            "--without-keys",
            action="store_true",
            help="Use the keys of this site; stored credentials may be unreadable.",
        )

    def handle(
        self, *_: Any, file: Path, replace: bool, without_keys: bool, **__: Any
    ) -> None:
        try:
            done = restore_backup(file, replace=replace, with_keys=not without_keys)
        except BackupError as refused:
            raise CommandError(str(refused)) from None
        except DatabaseError as error:
            raise CommandError(f"The database cannot be used: {error}") from error
        with take_turns():
            apply_migrations()
        self.stdout.write(
            f"Restored the backup of {done.created_at:%Y-%m-%d %H:%M} UTC: "
            f"{done.users} users, {done.runs} runs."
        )
        self.stdout.write(
            "The site is paused: no run, schedule or webhook is executed. Start it, "
            "then confirm on any page as an administrator, or with: "
            f"{settings.MANAGE_COMMAND} confirm_restore"
        )
