"""Counting ended runs by day, agent, person and outcome, for the charts."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, date
from decimal import Decimal
from typing import NamedTuple

from django.db.models import F

from runs.models import RunCard, RunTally


class Place(NamedTuple):
    """The row of the tally that a run is counted in."""

    day: date
    agent_id: int
    owner_id: int
    status: str


class Sums(NamedTuple):
    """What is added to a row."""

    runs: int = 0
    tokens: int = 0
    cost: Decimal = Decimal(0)

    def plus(self, card: RunCard, sign: int) -> "Sums":
        """Return the sums with a card counted in, or out where `sign` is -1."""
        return Sums(
            self.runs + sign,
            self.tokens + sign * card.tokens,
            self.cost + sign * Decimal(card.cost),
        )


def tally_cards(added: Iterable[RunCard], *, removed: Iterable[RunCard] = ()) -> None:
    """Count cards in and others out; within a transaction, so that none counts twice.

    Each card comes with its `run`. Rows are changed in one order, so that two workers
    never wait for each other in a circle.
    """
    changes: dict[Place, Sums] = defaultdict(Sums)
    for sign, cards in ((1, added), (-1, removed)):
        for card in cards:
            place = place_of(card)
            changes[place] = changes[place].plus(card, sign)
    rows = [RunTally(**place._asdict()) for place in sorted(changes)]
    RunTally.objects.bulk_create(rows, ignore_conflicts=True)
    for place in sorted(changes):
        sums = changes[place]
        RunTally.objects.filter(**place._asdict()).update(
            runs=F("runs") + sums.runs,
            tokens=F("tokens") + sums.tokens,
            cost=F("cost") + sums.cost,
        )


def place_of(card: RunCard) -> Place:
    """Return where a card is counted."""
    day = card.ended_at.astimezone(UTC).date()
    return Place(day, card.run.agent_id, card.run.owner_id, card.status)
