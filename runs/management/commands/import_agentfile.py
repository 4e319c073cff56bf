"""`import_agentfile FILE [--owner USERNAME]`: create and publish its agents.

Agents of other products become drafts.
"""

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from runs.management.agentfiles import add_storing_options, write_changes, write_missing
from runs.management.site_command import SiteCommand
from runs.management.users import get_owner
from runs.services.agentfile.load import import_agentfile
from runs.services.agentfile.text import AgentFileRefused
from runs.services.importers.convert import convert_foreign_file
from runs.services.importers.document import MAX_JSON_CHARS
from runs.services.importers.errors import ForeignFileRefused

MAX_BYTES = 4 * MAX_JSON_CHARS
"""A character has at most 4 bytes in UTF-8."""


class Command(SiteCommand):
    """Import one file, all or nothing."""

    help = (
        "Create or update the agents, tools and providers of an agent file. A file of "
        "another product is converted, and its agents become drafts."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", help="Path of a file, or - for standard input.")
        add_storing_options(parser)
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
        person = get_owner(owner)
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
        write_changes(self, done, is_plan=dry_run, with_fields=False)
        write_missing(self, done)
        if not done.has_changes:
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
