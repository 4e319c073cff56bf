"""`import_agentfile FILE [--owner USERNAME]`: create and publish its agents.

Agents of other products become drafts.
"""

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from runs.management.users import get_active_user, get_first_superuser
from runs.services.agentfile.load import import_agentfile
from runs.services.agentfile.text import AgentFileRefused
from runs.services.importers.convert import convert_foreign_file
from runs.services.importers.document import MAX_JSON_CHARS
from runs.services.importers.errors import ForeignFileRefused

MAX_BYTES = 4 * MAX_JSON_CHARS
"""A character has at most 4 bytes in UTF-8."""


class Command(BaseCommand):
    """Import one file, all or nothing."""

    help = (
        "Create or update the agents, tools and providers of an agent file. A file of "
        "another product is converted, and its agents become drafts."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", help="Path of a file, or - for standard input.")
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
        text = read_text_file(file)
        try:
            foreign = convert_foreign_file(text, person, name=file)
            done = import_agentfile(
                foreign.text if foreign else text,
                person,
                inert=foreign is not None,
                draft=draft,
                dry_run=dry_run,
            )
        except (AgentFileRefused, ForeignFileRefused) as error:
            raise CommandError(f"Nothing was imported.\n{error}") from None
        if foreign is not None:
            self.stdout.write(f"Converted a file of {foreign.product}.")
            for part, reason in foreign.skipped:
                self.stderr.write(f"Not imported: {part}: {reason}")
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
        if file == "-":
            raw = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with Path(file).open("rb") as source:
                raw = source.read(MAX_BYTES + 1)
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}.") from None
    if len(raw) > MAX_BYTES:
        raise CommandError(f"{file} is longer than {MAX_BYTES // 1_000_000} MB.")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise CommandError(f"{file} is not UTF-8 text.") from None
