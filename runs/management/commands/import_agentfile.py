"""`import_agentfile FILE [--owner USERNAME]`: make, publish and enable its agents."""

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from runs.management.people import first_operator, user_named
from runs.services.agentfile_text import AgentFileRefused
from runs.services.import_agentfile import import_agentfile


class Command(BaseCommand):
    """Import one file, all or nothing."""

    help = "Make or update what an agent file (YAML or JSON) describes."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the file and its owner."""
        parser.add_argument("file", help="A path, or - for standard input.")
        parser.add_argument(
            "--owner",
            metavar="USERNAME",
            help="Whose they will be; without it, the first administrator's.",
        )

    def handle(self, *_: Any, file: str, owner: str | None, **__: Any) -> None:
        """Import and say what was done."""
        person = first_operator() if owner is None else user_named(owner)
        try:
            done = import_agentfile(text_of(file), person)
        except AgentFileRefused as error:
            raise CommandError(f"Nothing was imported.\n{error}") from None
        for word, names in done._asdict().items():
            for name in names:
                self.stdout.write(f"{word} {name}")
        if not any(done):
            self.stdout.write("Nothing has changed.")


def text_of(file: str) -> str:
    """Return the text of the file; end the command with a sentence if there is none."""
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return raw.decode("utf-8-sig")
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise CommandError(f"{file} is not UTF-8 text.") from None
