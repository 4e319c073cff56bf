"""`manage.py erase_person`: delete a person's data, and their name elsewhere."""

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import CommandError

from runs.management.site_command import SiteCommand
from runs.management.users import get_user
from runs.services.retention.erase_person import (
    CannotErase,
    ErasurePlan,
    erase_person,
    list_person_stages,
    plan_erasure,
)
from runs.services.retention.jobs import claim_job, run_job


class Command(SiteCommand):
    """Shows the plan first, unless `--yes` is given."""

    help = "Erase a person: delete their runs, conversations and account."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username")
        parser.add_argument(
            "--transfer-to",
            metavar="USERNAME",
            help="Who gets the agents, tools and other definitions; default: delete.",
        )
        parser.add_argument(
            "--yes", action="store_true", help="Erase; without it, print the plan."
        )

    def handle(
        self,
        *args: Any,
        username: str,
        transfer_to: str | None,
        yes: bool,
        **options: Any,
    ) -> None:
        user = get_user(username)
        receiver = get_user(transfer_to) if transfer_to else None
        if not yes:
            self.print_plan(plan_erasure(user), receiver)
            return
        try:
            job = erase_person(user, to=receiver, by=None)
        except CannotErase as refused:
            raise CommandError(str(refused)) from None
        claimed = claim_job(job.pk)
        if claimed is None:
            self.stdout.write("A worker is erasing the person already.")
            return
        run_job(claimed, stages=list_person_stages(claimed))
        counts = ", ".join(f"{n} {noun}" for noun, n in claimed.counts.items() if n)
        self.stdout.write(f"Erased: {counts}.")

    def print_plan(self, plan: ErasurePlan, receiver: User | None) -> None:
        for row in plan.deleted:
            self.stdout.write(f"{row.label}: {row.rows} deleted")
        fate = f"transferred to {receiver.username}" if receiver else "deleted"
        for row in plan.owned:
            self.stdout.write(f"{row.label}: {row.rows} {fate}")
        self.stdout.write(f"Audit log entries: name replaced in {plan.mentions}")
        if plan.used_by_others and receiver is None:
            names = ", ".join(plan.used_by_others)
            self.stdout.write(f"Used by others, so --transfer-to is needed: {names}")
        self.stdout.write("Nothing was changed. Add --yes to erase.")
