"""`import_agentfile FILE [--owner USERNAME]`: create and publish its agents."""

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from runs.management.users import get_active_user, get_first_superuser
from runs.services.agentfile.load import import_agentfile
from runs.services.agentfile.text import AgentFileRefused


class Command(BaseCommand):
    """Import one file, all or nothing."""

    help = "Create or update the agents, tools and providers of an agent file."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "file", help="Path of a YAML or JSON file, or - for standard input."
        )
        parser.add_argument(
            "--owner",
            metavar="USERNAME",
            help="Owner of what is imported (default: the first administrator).",
        )

        parser.add_argument(
            "--draft",
            action="store_true",
            help="Import agents without publishing them.",
        )
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="Print what would change, and change nothing.",
        )

    def handle(
        self,
        *_: Any,
        file: str,
        owner: str | None,
        draft: bool,
        dry_run: bool,
        **__: Any,
    ) -> None:
        person = get_first_superuser() if owner is None else get_active_user(owner)
        try:
            done = import_agentfile(
                read_text_file(file), person, draft=draft, dry_run=dry_run
            )
        except AgentFileRefused as error:
            raise CommandError(f"Nothing was imported.\n{error}") from None
        changes = {
            "create": done.created,
            "update": done.updated,
            "publish": done.published,
        }
        for verb, names in changes.items():
            message = f"would {verb}" if dry_run else f"{verb.rstrip('e')}ed"
            for name in names:
                self.stdout.write(f"{message} {name}")
        for sentence in done.missing:
            self.stderr.write(f"Warning: {sentence}.")
        if not any(changes.values()):
            self.stdout.write("No changes.")


def read_text_file(file: str) -> str:
    """Return the text of the file; raise `CommandError` if it cannot be read."""
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return raw.decode("utf-8-sig")
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise CommandError(f"{file} is not UTF-8 text.") from None
