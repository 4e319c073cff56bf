"""`confirm_restore`: decide what continues on a restored site, and end its pause."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from runs.management.site_command import SiteCommand
from runs.services.backup.confirm import (
    NoPausedRestore,
    RestoreChoices,
    confirm_restore,
)
from runs.services.retention.jobs import find_next_daily_time


class Command(SiteCommand):
    help = "End the pause of a restored site. The defaults repeat nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--runs",
            choices=["stop", "continue"],
            default="stop",
            help="Runs that were in progress: fail them, to be resumed one by one or "
            "together (default), or continue them.",
        )
        parser.add_argument(
            "--schedules",
            choices=["disable", "continue"],
            default="disable",
            help="Disable all (default), or continue with the next time.",
        )
        parser.add_argument(
            "--webhooks",
            choices=["disable", "discard", "send"],
            default="disable",
            help="Discard unsent deliveries and disable all webhooks (default), only "
            "discard, or send.",
        )

    def handle(
        self, *_: Any, runs: Any, schedules: Any, webhooks: Any, **__: Any
    ) -> None:
        choices = RestoreChoices(runs, schedules, webhooks)
        try:
            work = confirm_restore(choices, by=None)
        except NoPausedRestore:
            raise CommandError("The site is not paused by a restore.") from None
        self.stdout.write(
            f"{work.active_runs} runs: {runs}. {work.schedules} schedules: "
            f"{schedules}. {work.webhooks} webhooks with {work.deliveries} unsent "
            f"deliveries: {webhooks}. The site is no longer paused."
        )
        if work.awaiting_runs:
            self.stdout.write(
                f"{work.awaiting_runs} runs await an approval or a decision. The "
                "original site may have executed their calls after the backup."
            )
        if next_at := find_next_daily_time():
            self.stdout.write(
                f"Retention rules apply again from {next_at:%Y-%m-%d %H:%M} UTC and "
                "delete restored runs that are old enough. Change the rules before "
                "then to keep them."
            )
