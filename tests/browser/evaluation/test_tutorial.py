"""docs/tutorial-evaluation.md, step by step, on a site as `make run` starts it."""

import subprocess
import sys

import pytest

from tests.browser.driver.chromium import listen
from tests.browser.driver.tutorial import enter, walk_to_the_end, walk_to_the_gate
from tests.faults.site import ROOT, environment, start

pytestmark = [pytest.mark.browser, pytest.mark.slow]

COMMAND = ["manage.py", "run_experiment", "Day trips", "--candidate", "draft"]


def test_the_tutorial_leads_from_a_complaint_to_a_gate_and_a_rule(
    browser, tmp_path_factory: pytest.TempPathFactory
):
    site = start(tmp_path_factory.mktemp("tutorial") / "data")
    report = site.data / "report.xml"

    def run_experiment() -> "subprocess.CompletedProcess[str]":
        words = [sys.executable, *COMMAND, "--fail-under", "1", "--junit", str(report)]
        return subprocess.run(
            words,
            cwd=ROOT,
            env=environment(site.data),
            capture_output=True,
            text=True,
            check=False,
        )

    try:
        context = browser.new_context(viewport={"width": 1180, "height": 900})
        page = context.new_page()
        received = listen(page)
        url = enter(page, site)
        walk_to_the_gate(page, url)
        refused = run_experiment()
        walk_to_the_end(page, url)
        passed = run_experiment()
        context.close()
    finally:
        site.end()

    assert received == []
    assert refused.returncode == 1, refused.stderr
    assert "Draft: 1 of 3 passed" in refused.stdout
    assert passed.returncode == 0, passed.stderr
    printed = "".join(f"    {line}\n" for line in passed.stdout.splitlines())
    assert printed in (ROOT / "docs/tutorial-evaluation.md").read_text()
    assert report.read_text().count("<testcase ") == 6
