"""Every scenario file: the shared set where its folder is named, and our own."""

import os
from pathlib import Path

import pytest

from runs.engine.scenarios import run_scenario, scenarios_in

OWN = Path(__file__).parent.parent / "scenarios"
SHARED = os.environ.get("AGENTSITE_SCENARIOS")
FOLDERS = [OWN, *([Path(SHARED)] if SHARED else [])]


@pytest.mark.parametrize(
    "file",
    [file for folder in FOLDERS for file in sorted(folder.glob("*.json"))],
    ids=str,
)
def test_every_scenario_of_the_file_passes(file):
    failed = [v for v in map(run_scenario, scenarios_in(file)) if not v.passed]

    assert failed == []
