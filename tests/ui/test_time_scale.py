"""The time axis of a run's rows."""

import re
from pathlib import Path

import pytest

from runs.ui import time_scale as timeline
from runs.ui.time_scale import BASE_SECONDS, TICK_INTERVALS, TimeScale

STATIC = Path(timeline.__file__).parent.parent / "static" / "runs"


@pytest.mark.parametrize(
    ("seconds", "ticks"),
    [
        (0.15, [0, 0.05, 0.1, 0.15]),
        (48, [0, 15, 30, 45]),
        (61, [0, 20, 40, 60]),
        (3001, [0, 900, 1800, 2700]),
        (7201, [0, 3600, 7200, 10800]),
    ],
    ids=str,
)
def test_the_axis_counts_in_lengths_that_people_count_in(seconds, ticks):
    assert TimeScale.fitting(seconds).ticks == pytest.approx(ticks)


def test_the_longest_axis_takes_every_run():
    assert TimeScale.fitting(1e9).number == len(TICK_INTERVALS) - 1


def test_the_style_sheet_squeezes_bars_as_the_axis_says():
    css = (STATIC / "css" / "run.css").read_text()
    found = re.findall(r'data-scale="s(\d+)"[^{]*{\s*transform: scaleX\(([^)]+)\)', css)

    squeezed = {int(number): float(factor) for number, factor in found}
    assert squeezed == pytest.approx(
        {n: BASE_SECONDS / (quarter * 4) for n, quarter in enumerate(TICK_INTERVALS)},
        rel=1e-6,
    )


def test_the_script_knows_the_same_lengths():
    script = (STATIC / "run.js").read_text()
    found = re.search(r"const QUARTERS = \[([^]]+)\]", script)

    lengths = [float(word) for word in found[1].split(",") if word.strip()]
    assert lengths == pytest.approx(TICK_INTERVALS)
