"""A worker process at its start, and a machine whose clock is wrong."""

from datetime import UTC, datetime, timedelta

import pytest

from runs.models import AgentStep, ModelCall
from runs.store import database_clock as clock_module
from runs.store.database_clock import site_clock
from runs.worker import process
from tests.fakes.model_server import model_server
from tests.worker.run_parts import agent_on, call, executed

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def machine(monkeypatch):
    """Set the clock of this machine wrong by so many hours."""

    def set_wrong(hours: int) -> None:
        wrong = timedelta(hours=hours)
        monkeypatch.setattr(
            clock_module, "read_machine_time", lambda: datetime.now(UTC) + wrong
        )

    monkeypatch.setattr(site_clock, "ahead", timedelta(0))
    return set_wrong


@pytest.mark.parametrize(
    ("hours", "warnings"),
    [
        pytest.param(0, 0, id="right"),
        pytest.param(1, 1, id="fast"),
        pytest.param(-1, 1, id="slow"),
    ],
)
def test_a_worker_with_a_wrong_clock_says_so(hours, warnings, machine, caplog):
    machine(hours)

    process.warn_about_wrong_clock()

    said = [one for one in caplog.records if one.name == process.logger.name]
    assert len(said) == warnings


@pytest.mark.parametrize("hours", [1, -1])
def test_a_wrong_clock_gives_steps_and_model_calls_no_wrong_times(hours, machine):
    machine(hours)
    process.warn_about_wrong_clock()
    began = datetime.now(UTC)

    with model_server(script=[call("add", a=1, b=2), "Done."]) as server:
        run = executed(agent_on(server, "add"))

    step = AgentStep.objects.get(run=run)
    calls = ModelCall.objects.filter(run=run).values_list("started_at", flat=True)
    times = [step.started_at, step.ended_at, *calls]
    assert run.status == "succeeded"
    assert [at for at in times if abs(at - began) > timedelta(minutes=5)] == []
