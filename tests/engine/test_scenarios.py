"""Every scenario file: our own, and those of the folders in AGENTSITE_SCENARIOS."""

import os
from pathlib import Path

import pytest

from runs.engine.scenarios import load_scenarios, run_scenario

OWN = Path(__file__).parent.parent / "scenarios"
SHARED = os.environ.get("AGENTSITE_SCENARIOS", "")
FOLDERS = [OWN, *(Path(folder) for folder in SHARED.split(":") if folder)]


@pytest.mark.parametrize(
    "file",
    [file for folder in FOLDERS for file in sorted(folder.glob("*.json"))],
    ids=str,
)
def test_every_scenario_of_the_file_passes(file):
    failed = [v for v in map(run_scenario, load_scenarios(file)) if not v.passed]

    assert failed == []
