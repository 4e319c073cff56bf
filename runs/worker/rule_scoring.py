"""Turns of scoring rules; a slow one holds up no other rule."""

import threading

from runs.models import ScoringRule
from runs.services.rules.score_runs import (
    advance_scoring_rule,
    claim_scoring_rule,
    may_take_long,
)
from runs.worker.log_failures import log_failures

IDLE_SECONDS = 5.0
"""Between two looks while no rule has runs to score."""
BUSY_SECONDS = 0.3
MAX_SLOW_RULES = 16
"""Rules that may take long and have a turn at the same time, in own threads."""


class RuleScoring:
    """Scores by rules: those that may take long in threads, the others at once.

    The threads are daemons: none delays the exit, and what they have not stored is
    scored again when the lease of the rule ends.
    """

    def __init__(self) -> None:
        self._threads: list[threading.Thread] = []

    def take_turn(self) -> float:
        """Advance a rule, or let a thread do it; return the seconds until the next."""
        self._threads = [one for one in self._threads if one.is_alive()]
        is_full = len(self._threads) >= MAX_SLOW_RULES
        rule = claim_scoring_rule(with_slow=not is_full)
        if rule is None:
            return IDLE_SECONDS
        if not may_take_long(rule):
            advance_scoring_rule(rule)
            return BUSY_SECONDS
        thread = threading.Thread(
            target=advance_in_thread, args=(rule,), name="rule", daemon=True
        )
        thread.start()
        self._threads.append(thread)
        return BUSY_SECONDS


def advance_in_thread(rule: ScoringRule) -> None:
    with log_failures("no scores", f"scoring rule {rule.pk} could not be advanced"):
        advance_scoring_rule(rule)
