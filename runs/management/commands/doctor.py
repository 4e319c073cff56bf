"""`doctor`: check an installation; a line for each check, and how to fix it."""

import json
import sys
from collections import Counter
from typing import Any

from django.core.management.base import CommandParser

from runs.management.site_command import SiteCommand
from runs.services.doctor.examine import examine_site
from runs.services.doctor.finding import Finding


class Command(SiteCommand):
    help = "Check settings, servers, workers and files; exit 1 if there is an error."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--json", action="store_true", help="Print one JSON object instead."
        )

    def handle(self, *_: Any, **options: Any) -> None:
        """Print each finding when it is known."""
        found = []
        for finding in examine_site():
            found.append(finding)
            if not options["json"]:
                self.stdout.write(format_finding(finding))
        counts = Counter(finding.status for finding in found)
        if options["json"]:
            checks = [finding._asdict() for finding in found]
            report = {"ok": not counts["error"], "checks": checks}
            self.stdout.write(json.dumps(report, indent=2))
        else:
            self.stdout.write(
                f"{counts['ok']} ok, {counts['warning']} warnings, "
                f"{counts['error']} errors"
            )
        if counts["error"]:
            sys.exit(1)


def format_finding(finding: Finding) -> str:
    """Return the line, and the fix on a second one."""
    line = f"{finding.status:8} {finding.check:12} {finding.message}"
    return f"{line}\n{'':21} Fix: {finding.fix}" if finding.fix else line
