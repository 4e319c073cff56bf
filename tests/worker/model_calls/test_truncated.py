"""A reply that the token limit cut off is marked wherever it is shown."""

import pytest

from runs.models import Conversation, Run
from runs.services.forks.edits import ForkEdits
from runs.services.forks.fork import fork_run
from runs.services.forks.point import load_fork_point
from runs.services.runs.share import share_run
from tests.api.make_client import Api
from tests.fakes.model_server import model_server
from tests.worker.run_parts import agent_on, call, executed, go_on

pytestmark = pytest.mark.django_db(transaction=True)

CUT = {"content": "It is a long", "finish_reason": "length"}


def run_with(*script, **fields) -> Run:
    with model_server(script=list(script)) as server:
        return executed(agent_on(server, "add", **fields))


def test_an_answer_that_was_cut_off_is_marked(client):
    run = run_with(call("add", a=1, b=2), CUT)

    said = Api(run.owner).get(f"runs/{run.pk}").json()
    assert (said["status"], said["output"]) == ("succeeded", "It is a long")
    assert (said["finish_reason"], said["truncated"]) == ("length", True)
    client.force_login(run.owner)
    page = client.get(f"/runs/{run.pk}/").content.decode()
    assert page.count(f'id="run-truncated-{run.pk}"') == 1
    assert page.count(">cut off<") == 1
    step = client.get(f"/runs/{run.pk}/?step=3").content.decode()
    assert f'id="run-truncated-{run.pk}"' in step


def test_a_shared_answer_that_was_cut_off_is_marked(client):
    run = run_with(CUT)

    shared = client.get(
        f"/shared/{share_run(run, by=run.owner, hours=1)}/"
    ).content.decode()

    assert ">cut off<" in shared


def test_an_answer_in_the_chat_that_was_cut_off_is_marked(client):
    run = run_with(CUT)
    run.conversation = Conversation.objects.create(owner=run.owner, agent=run.agent)
    run.save()
    client.force_login(run.owner)

    page = client.get(f"/chat/{run.agent.slug}/{run.conversation.pk}/").content.decode()

    assert page.count(f'id="run-truncated-{run.pk}"') == 1


def test_a_whole_answer_is_not_marked(client):
    run = run_with("It is 3.")

    said = Api(run.owner).get(f"runs/{run.pk}").json()
    assert (said["finish_reason"], said["truncated"]) == ("stop", False)
    client.force_login(run.owner)
    assert "run-truncated" not in client.get(f"/runs/{run.pk}/").content.decode()


def test_a_round_that_was_cut_off_is_marked_but_not_the_answer_after_it(client):
    run = run_with({**call("add", a=1, b=2), "finish_reason": "length"}, "It is 3.")

    said = Api(run.owner).get(f"runs/{run.pk}").json()
    assert (said["finish_reason"], said["truncated"]) == ("stop", False)
    client.force_login(run.owner)
    page = client.get(f"/runs/{run.pk}/").content.decode()
    assert page.count(">cut off<") == 1
    assert "run-truncated" not in page


def test_a_run_that_did_not_end_with_a_reply_has_no_finish_reason():
    run = run_with(call("add", a=1, b=2), executor={"max_iterations": 1})

    said = Api(run.owner).get(f"runs/{run.pk}").json()
    assert run.status == "limit_reached"
    assert (said["finish_reason"], said["truncated"]) == (None, False)


def test_a_fork_that_reuses_the_reply_keeps_the_mark():
    with model_server(script=[CUT, "Whole."]) as server:
        parent = executed(agent_on(server, "add"))
        again = fork_run(load_fork_point(parent, 1), by=parent.owner, edits=ForkEdits())
        assert not go_on(again).is_truncated
    assert parent.is_truncated
