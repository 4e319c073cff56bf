"""`export_agentfile [SLUG ...]`: print agents as a file that can be imported."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from runs.management.people import user_named
from runs.services.export_agentfile import NoSuchAgent, export_agentfile


class Command(BaseCommand):
    """Print agents with the providers, prompts and tools they use."""

    help = "Print agents as YAML; without slugs, all that are not archived."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take slugs and an owner."""
        parser.add_argument("slugs", nargs="*", metavar="SLUG")
        parser.add_argument("--owner", metavar="USERNAME", help="Only this user's.")

    def handle(self, *_: Any, slugs: list[str], owner: str | None, **__: Any) -> None:
        """Print them."""
        person = None if owner is None else user_named(owner)
        try:
            self.stdout.write(export_agentfile(slugs, owner=person), ending="")
        except NoSuchAgent as error:
            raise CommandError(str(error)) from None
