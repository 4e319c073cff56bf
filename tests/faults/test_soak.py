"""The soak: it finds what is wrong, and three hundred runs show nothing."""

import subprocess
import sys
from pathlib import Path

import pytest

from runs.models import Run
from tests.make import make_decision, make_run, make_step
from tests.soak.judge import violations
from tests.soak.model import answer_to

ROOT = Path(__file__).parent.parent.parent


def soaked(status="succeeded", *, tool="pay", **fields):
    """Make a run of one round with one call; return what the ledger should say."""
    run = make_run(
        status=status,
        inputs={"input": "Soak run 7, 1 rounds."},
        output=answer_to(7, 1),
        next_index=0,
    )
    defaults = {"elapsed": 0.1, "attempts": 1, "duration": 0.1}
    return make_step(
        run, tool=tool, tool_input={"call": "7.0.0"}, **{**defaults, **fields}
    )


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("tool", "ledger", "sentence"),
    [
        pytest.param("pay", ["pay 7.0.0"] * 2, "2 times, allowed 1", id="twice"),
        pytest.param("look", ["look 7.0.0"] * 2, "happened 2 times", id="read twice"),
        pytest.param("pay", [], "never happened", id="never"),
        pytest.param(
            "pay", ["pay 7.0.0", "pay 8.0.0"], "no step says so", id="unknown"
        ),
    ],
)
def test_the_judge_sees_what_happened_wrongly(tool, ledger, sentence):
    soaked(tool=tool)

    assert sentence in " ".join(violations(ledger))


@pytest.mark.django_db
def test_a_second_time_needs_a_persons_approval():
    step = soaked(attempts=2)
    assert "allowed 1" in " ".join(violations(["pay 7.0.0"] * 2))

    make_decision(step, question="outcome", answer="retry")

    assert "allowed" not in " ".join(violations(["pay 7.0.0"] * 2))


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("fence", "is_allowed"), [pytest.param(1, False), pytest.param(2, True)]
)
def test_a_quick_read_is_repeated_only_after_a_lost_worker(fence, is_allowed):
    step = soaked(tool="look")
    Run.objects.filter(pk=step.run_id).update(fence=fence)

    assert ("allowed" not in " ".join(violations(["look 7.0.0"] * 2))) is is_allowed


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("tool", "status", "fence", "is_allowed"),
    [
        pytest.param("look", "canceled", 2, True, id="lost with its worker"),
        pytest.param("look", "canceled", 1, False, id="no worker was lost"),
        pytest.param("look", "succeeded", 2, False, id="another worker went on"),
        pytest.param("pay", "canceled", 2, False, id="a side effect"),
    ],
)
def test_a_read_without_a_step_needs_a_lost_worker(tool, status, fence, is_allowed):
    asked = {"input": "Soak run 7, 1 rounds."}
    run = make_run(status=status, inputs=asked, output=answer_to(7, 1))
    Run.objects.filter(pk=run.pk).update(fence=fence)

    assert ("no step" not in " ".join(violations([f"{tool} 7.0.0"]))) is is_allowed


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        ("running", "is running for ever"),
        ("limit_reached", "stopped: "),
        ("failed", "failed"),
    ],
)
def test_the_judge_sees_a_run_that_did_not_end_well(status, sentence):
    soaked(status)

    assert sentence in " ".join(violations(["pay 7.0.0"]))


@pytest.mark.faults
@pytest.mark.slow
def test_nothing_is_violated_while_everything_breaks():
    done = subprocess.run(
        [sys.executable, "-m", "tests.soak", "--seed", "1", "--runs", "300"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=500,
    )

    last = done.stdout.strip().splitlines()[-1]
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert last.startswith("runs=300 faults=30 violations=0 recovery_p99=")
