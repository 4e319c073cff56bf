"""`backup FILE`: write a backup of the site, which may be running."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from runs.management.site_command import SiteCommand
from runs.services.backup.create import create_backup
from runs.services.errors import BackupError


class Command(SiteCommand):
    help = "Write a backup of the site to a new file. The site may be running."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument(
            "--without-keys",
            action="store_true",
            help="Leave out the secret files of the data folder.",
        )

    def handle(self, *_: Any, file: Path, without_keys: bool, **__: Any) -> None:
        try:
            done = create_backup(file, with_keys=not without_keys)
        except BackupError as refused:
            raise CommandError(str(refused)) from None
        size = file.stat().st_size / 1e6
        self.stdout.write(
            f"Wrote {file}: {done.users} users, {done.runs} runs, {size:.1f} MB."
        )
        self.stdout.write(
            "It contains the encryption keys. Whoever has the file can read all stored "
            "credentials."
            if any(name.startswith("secrets/") for name in done.files)
            else "It does not contain the encryption keys. Keep them in another place: "
            "without them, stored credentials cannot be decrypted."
        )
