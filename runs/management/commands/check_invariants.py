"""`check_invariants`: print every row that violates a rule; exit 1 if any."""

import sys
from typing import Any

from runs.management.site_command import SiteCommand
from runs.services.health.invariants import RULES, check_invariants


class Command(SiteCommand):
    help = "Print every violation of the invariants of runs; exit 1 if any."

    def handle(self, *_: Any, **__: Any) -> None:
        """Print each violation, and their number on the last line."""
        count = 0
        for violation in check_invariants():
            count += 1
            self.stdout.write(str(violation))
        self.stdout.write(f"{len(RULES)} rules, {count} violations")
        if count:
            sys.exit(1)
