"""`export_agentfile [SLUG ...]`: print agents as a file that can be imported."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from runs.management.site_command import SiteCommand
from runs.management.users import get_user
from runs.services.agentfile.export import (
    AgentNotFound,
    ExportTooLarge,
    export_agentfile,
)


class Command(SiteCommand):
    """Print agents with the providers, prompts and tools that they use."""

    help = "Print agents as YAML: those with the slugs, or all that are not archived."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slugs", nargs="*", metavar="SLUG")
        parser.add_argument(
            "--owner", metavar="USERNAME", help="Only agents of this user."
        )
        parser.add_argument(
            "--draft",
            action="store_true",
            help="Print the drafts instead of the newest versions.",
        )
        parser.add_argument(
            "--datasets",
            action="store_true",
            help="Print all datasets and evaluators of their experiments, too.",
        )

    def handle(
        self,
        *_: Any,
        slugs: list[str],
        owner: str | None,
        draft: bool,
        datasets: bool,
        **__: Any,
    ) -> None:
        person = None if owner is None else get_user(owner)
        try:
            text = export_agentfile(slugs, owner=person, draft=draft, datasets=datasets)
            self.stdout.write(text, ending="")
            for line in text.splitlines() if text.startswith("# WARNING") else ():
                if line.startswith("# "):
                    self.stderr.write(line.removeprefix("# "))
        except (AgentNotFound, ExportTooLarge) as error:
            raise CommandError(str(error)) from None
