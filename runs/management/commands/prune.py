"""`manage.py prune`: apply the retention rules now."""

import time
from argparse import ArgumentParser
from datetime import datetime
from typing import Any

from django.utils import timezone

from runs.management.site_command import SiteCommand
from runs.models import DeletionJob, RetentionRule
from runs.services.retention.jobs import (
    claim_job,
    create_prune_job,
    release_job,
    run_job,
)
from runs.services.retention.preview import AGENTS, count_prunable
from runs.services.retention.rules import RetentionRules, load_rules

REPORT_SECONDS = 5.0


class Command(SiteCommand):
    """Needs no worker. If it is interrupted, a worker does the rest."""

    help = "Delete what the retention rules no longer keep."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="Print what would be deleted, and delete nothing.",
        )

    def handle(self, *args: Any, dry_run: bool, **options: Any) -> None:
        rules = load_rules()
        if rules.is_empty:
            self.stdout.write(
                "There are no retention rules: everything is kept. An administrator "
                "sets them on the page Retention."
            )
        elif dry_run:
            self.print_preview(rules, timezone.now())
        else:
            self.prune()

    def print_preview(self, rules: RetentionRules, at: datetime) -> None:
        counts = count_prunable(rules, at)
        labels = {**dict(RetentionRule.Kind.choices), AGENTS: "Agents with own rules"}
        for kind, label in labels.items():
            if kind in counts:
                days = rules.days.get(kind)
                age = f" older than {days} days" if days else ""
                self.stdout.write(f"{label}{age}: {counts[kind]}")
        self.stdout.write("Nothing was deleted.")

    def prune(self) -> None:
        job = claim_job(create_prune_job().pk)
        if job is None:
            self.stdout.write("A worker is pruning already. See the page Retention.")
            return
        self.reported_at = time.monotonic()
        try:
            is_done = run_job(job, report=self.report)
        except KeyboardInterrupt:
            release_job(job)
            is_done = False
        deleted = format_counts(job)
        self.stdout.write(f"{'Deleted' if is_done else 'Not finished'}: {deleted}.")

    def report(self, job: DeletionJob) -> None:
        if time.monotonic() - self.reported_at > REPORT_SECONDS:
            self.stdout.write(f"Deleted so far: {format_counts(job)}.")
            self.reported_at = time.monotonic()


def format_counts(job: DeletionJob) -> str:
    counts = {noun.replace("_", " "): count for noun, count in job.counts.items()}
    found = ", ".join(f"{count} {noun}" for noun, count in counts.items() if count)
    return found or "nothing"
