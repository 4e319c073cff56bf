"""What a run stores of a model call, beside what its spec and other columns say."""

import pytest

from runs.engine.types import ModelSettings
from runs.services.forks.edits import ForkEdits
from runs.services.forks.fork import fork_run
from runs.services.forks.point import load_fork_point
from tests.fakes.model_server import model_server
from tests.worker.run_parts import agent_on, call, executed, go_on

pytestmark = pytest.mark.django_db(transaction=True)


def test_settings_and_message_are_stored_once():
    with model_server(script=[call("add", a=1, b=2), "It is 3."]) as server:
        agent = agent_on(server, "add", parameters={"temperature": 0.5})
        run = executed(agent)

    sent = {
        "model": agent.model,
        "provider": agent.provider.slug,
        "provider_id": agent.provider_id,
        "parameters": {"temperature": 0.5},
    }
    assert [one.settings for one in run.calls.all()] == [{}, {}]
    assert [one.sent_settings for one in run.calls.all()] == [sent, sent]
    assert [set(one.reply) & {"native", "text"} for one in run.calls.all()] == [
        set(),
        {"text"},
    ]


def test_the_copied_calls_of_a_fork_keep_the_settings_they_were_sent_with():
    with model_server(script=[call("add", a=1, b=2), "It is 3.", "3."]) as server:
        run = executed(agent_on(server, "add"))
        other = ModelSettings(
            model="model-b", provider_id=run.spec.body["model"]["provider_id"]
        )
        fork = fork_run(
            load_fork_point(run, 3), by=run.owner, edits=ForkEdits(model=other)
        )
        go_on(fork)

    assert [one.sent_settings["model"] for one in fork.calls.all()] == [
        "model-a",
        "model-b",
    ]
