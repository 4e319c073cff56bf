"""How often a run may call a tool: counted over resumes, and told to the model."""

import pytest

from runs.models import Run
from runs.services.runs.resume import resume_run
from tests.fakes.model_server import model_server
from tests.worker import functions
from tests.worker.run_parts import agent_on, call, executed, go_on

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_limit_is_counted_over_a_resume():
    functions.mails.clear()
    script = [
        call("send_mail", to="ann"),
        call("send_mail", id="again", to="bob"),
        "Only one was sent.",
    ]
    with model_server(script=script) as server:
        agent = agent_on(server, "send_mail", executor={"max_iterations": 1})
        agent.uses.update(policy="allow", overrides={"calls_per_run": 1})
        run = executed(agent)
        assert run.stop_reason == Run.StopReason.ITERATIONS

        resume_run(run, by=run.owner, limits={"max_iterations": 5})
        go_on(run)

    assert (run.status, functions.mails) == ("succeeded", ["ann"])
    message = run.steps.get(index=1)
    assert message.has_failed
    assert message.observation == (
        "The limit is reached: 'send_mail' may be called once per run."
    )
