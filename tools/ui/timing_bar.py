"""Where the time of an HTTP request went, as a bar."""

from collections.abc import Mapping
from typing import NamedTuple

from tools.typed_generics import StrOrPromise
from tools.ui.trial_labels import PHASE_LABELS

GAP = 0.4
"""Percent of the bar between two phases."""
LEAST = 0.8
"""Percent of the bar that the shortest phase takes."""


LEAST_PREPARATION = 0.005
"""Seconds before the request that are shown."""

LEAST_SHOWN = 0.0005
"""Seconds of a phase that are not written as 0 ms."""


class TimingPhase(NamedTuple):
    """One phase: its label, and its place on the bar in percent."""

    name: str
    label: StrOrPromise
    seconds: float
    start: str
    width: str


def build_timing_bar(phases: Mapping[str, float], seconds: float) -> list[TimingPhase]:
    """Return the phases of `seconds` in order; together they fill the bar.

    What came before the request, such as loading the tool, is a phase, too.
    """
    before = seconds - sum(phases.values())
    phases = {name: took for name, took in phases.items() if took >= LEAST_SHOWN}
    if not phases:
        return []
    if before >= LEAST_PREPARATION:
        phases = {"prepare": before, **phases}
    total = sum(phases.values())
    shares = {name: max(100 * took / total, LEAST) for name, took in phases.items()}
    room = 100 - GAP * (len(shares) - 1)
    scale = room / sum(shares.values())
    found, at = [], 0.0
    for name, share in shares.items():
        width = share * scale
        found.append(
            TimingPhase(
                *(name, PHASE_LABELS[name], phases[name]),
                *(f"{at:.2f}%", f"{width:.2f}%"),
            )
        )
        at += width + GAP
    return found
