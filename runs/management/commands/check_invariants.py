"""`check_invariants`: name every row that breaks a rule; exit 1 if any."""

import sys
from typing import Any

from django.core.management.base import BaseCommand

from runs.services.check_invariants import RULES, check_invariants


class Command(BaseCommand):
    """Check all rules over all runs."""

    help = "Name every violation of the rules that runs must keep; exit 1 if any."

    def handle(self, *_: Any, **__: Any) -> None:
        """Print each violation, and a last line with their number."""
        count = 0
        for violation in check_invariants():
            count += 1
            self.stdout.write(str(violation))
        self.stdout.write(f"{len(RULES)} rules, {count} violations")
        if count:
            sys.exit(1)
