"""Runs whose calls are held back or replayed; a server outside counts what arrives."""

import os
from threading import Thread
from urllib.parse import urlsplit

import pytest
from django.db import connection
from django.db.models import F

from runs.engine.types import ToolMode
from runs.models import AgentStep, Decision, Delivery, Run, StepMedia
from runs.services.approvals.answer import approve_step
from runs.services.errors import NotAllowed
from runs.services.forks.edits import ForkEdits
from runs.services.forks.fork import fork_run
from runs.services.forks.point import load_fork_point
from runs.services.runs.resume import resume_run
from runs.services.runs.start import load_frozen_agent, start_run
from runs.services.tool_modes.changed_tools import find_changed_tools
from tests.fakes.model_server import model_server
from tests.make import make_user, make_webhook
from tests.worker.family import children_of, finished, sound
from tests.worker.functions import mails
from tests.worker.run_parts import agent_on, ask_before, call, executed, go_on, started
from tests.worker.tool_calls.ledger import (
    break_tools,
    make_writer,
    open_ledger,
    watch_connections,
    write_script,
)
from tools.models import Tool

pytestmark = pytest.mark.django_db(transaction=True)

REPLAYS = int(os.environ.get("REPLAYS", "10"))
"""Strict ones; of the other modes, a tenth of them each."""
OTHERS = max(REPLAYS // 10, 1)
STEP_FIELDS = ("index", "round", "tool", "tool_input", "log", "observation", "status")


NUMBERS = {
    "type": "object",
    "properties": {name: {"type": "integer"} for name in ("a", "b", "c")},
}


def start_in_mode(agent, mode, *, inputs=None, by=None, frozen=None):
    return start_run(
        agent,
        by=by or agent.owner,
        inputs=inputs or {"input": "Go."},
        draft=True,
        tool_mode=mode,
        frozen=frozen,
    )


def replay(run, kind="replay_strict", **more):
    mode = ToolMode(kind=kind, recording=run.pk, **more)
    return start_in_mode(run.agent, mode, inputs=run.inputs)


def steps_of(run):
    return list(run.steps.order_by("index").values(*STEP_FIELDS))


def answers_of(run):
    rows = run.steps.order_by("index").values_list("tool", "answered_by")
    return [f"{tool} {answered_by}".strip() for tool, answered_by in rows]


@pytest.fixture
def ledger(tmp_path, settings):
    with open_ledger(tmp_path, settings) as opened:
        yield opened


@pytest.fixture
def recorded(ledger):
    """A real run that called tools of every kind; then they would fail."""
    with model_server(script=write_script) as model:
        with watch_connections() as connected:
            run = finished(started(make_writer(ledger, model)))
        assert urlsplit(ledger.server.url).port in connected
        assert (run.status, run.output) == ("succeeded", "Written after 8 calls.")
        assert set(run.steps.values_list("status", flat=True)) == {"succeeded"}
        reached = ledger.take_entries()
        assert {"/read/first", "/function/a", "/http", "/mcp"} < set(reached)
        assert "/function/helped" in reached
        break_tools(ledger)
        yield run


@pytest.fixture
def connected(recorded, settings):
    """Collect the ports that are connected to, besides those of model and Redis."""
    model = urlsplit(recorded.agent.provider.base_url).port
    redis = urlsplit(settings.REDIS_URL).port
    others = set[int]()
    with watch_connections() as found:
        yield others
    assert model in found
    assert set(found) - {model, redis} == others


@pytest.mark.usefixtures("connected")
def test_strict_replays_give_the_same_steps_and_send_nothing(recorded, ledger):
    for _ in range(REPLAYS):
        run = finished(replay(recorded))

        assert (run.status, run.output) == ("succeeded", recorded.output)
        assert steps_of(run) == steps_of(recorded)
        assert set(run.steps.values_list("answered_by", flat=True)) == {"recording"}
        assert children_of(run) == []
        digests = [
            list(one.calls.values_list("digest", flat=True)) for one in (run, recorded)
        ]
        assert digests[0] == digests[1]
    assert ledger.take_entries() == []


@pytest.mark.usefixtures("connected")
def test_replays_by_tool_send_nothing(recorded, ledger):
    for _ in range(OTHERS):
        run = finished(replay(recorded, "replay_by_tool", sends_reads=True))

        assert steps_of(run) == steps_of(recorded)
    assert ledger.take_entries() == []


def test_a_run_that_holds_calls_back_only_reads(recorded, ledger, connected):
    connected.add(urlsplit(ledger.server.url).port)
    for _ in range(OTHERS):
        run = finished(start_in_mode(recorded.agent, ToolMode(kind="hold_back")))

        assert (run.status, run.output) == ("succeeded", recorded.output)
        assert answers_of(run) == [
            "read_entry",
            "post_entry held_back",
            "send_entry held_back",
            "compute_entry held_back",
            "query_entries held_back",
            "file_entry held_back",
            "helper",
            "post_entry held_back",
        ]
        assert ledger.take_entries() == ["/read/first"]
        (child,) = children_of(run)
        assert (child.tool_mode, child.is_test) == ("hold_back", True)
        assert answers_of(child) == ["post_entry held_back"]
        assert "would have been sent" in child.steps.get().observation


def test_a_held_back_call_needs_no_approval_and_reads_that_need_one_are_held_back():
    script = [call("add", a=1, b=2), call("send_mail", to="ann"), "Done."]
    with model_server(script=script) as server:
        agent = agent_on(server, "add", "send_mail")
        ask_before(agent, "add")
        ask_before(agent, "send_mail")
        run = go_on(start_in_mode(agent, ToolMode(kind="hold_back")))

    assert run.status == "succeeded"
    assert answers_of(run) == ["add held_back", "send_mail held_back"]


def recorded_sums(server):
    server.script = [call("add", a=1, b=2), call("add", a=2, b=2), "Done."]
    run = executed(agent_on(server, "add", "send_mail"))
    assert [step.observation for step in run.steps.order_by("index")] == ["3", "4"]
    return run


def test_a_strict_replay_ends_at_a_call_that_is_not_recorded():
    with model_server() as server:
        run = recorded_sums(server)
        other = [call("add", a=1, b=2), call("add", a=1, b=2), "Never."]
        server.script = list(other)
        ended = go_on(replay(run))
        again = (
            go_on(replay(run, "replay_by_tool"))
            if server.script == ["Never."]
            else None
        )

    assert again is not None
    assert (ended.status, ended.error_code) == ("failed", "not_recorded")
    assert "add({'a': 1, 'b': 2})" in ended.error_message
    assert answers_of(ended) == ["add recording", "add no_recording"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(
            {"args_schema": {**NUMBERS, "required": ["a", "b", "c"]}},
            "add({'a': 1, 'b': 2}): ",
            id="its schema",
        ),
        pytest.param({"name": "plus"}, "There is no tool 'add'", id="its name"),
    ],
)
def test_a_strict_replay_ends_at_a_call_that_its_tool_no_longer_accepts(change, said):
    with model_server() as server:
        run = recorded_sums(server)
        Tool.objects.filter(name="add").update(**change)
        server.script = [call("add", a=1, b=2), "Never."]
        ended = go_on(replay(run))

        assert server.script == ["Never."]
    assert (ended.status, ended.error_code) == ("failed", "not_recorded")
    assert "changed since the recording" in ended.error_message
    assert said in ended.error_message
    again = [call("add", a=1, b=2), "Never."]
    with model_server(script=again):
        resume_run(ended, by=ended.owner, limits={})
        assert go_on(ended).error_code == "not_recorded"
    sound()


def test_a_replay_by_tool_answers_the_corrected_call_of_a_changed_tool():
    with model_server() as server:
        run = recorded_sums(server)
        Tool.objects.update(args_schema={**NUMBERS, "required": ["c"]})
        server.script = [call("add", a=1, b=2), call("add", c=3), "Done."]
        played = go_on(replay(run, "replay_by_tool"))

    assert answers_of(played) == ["add", "add other_arguments"]
    assert "'c'" in played.steps.get(index=0).observation
    assert played.steps.get(index=1).observation == "3"


def test_a_call_that_a_limit_refuses_again_is_replayed():
    script = [call("add", a=1, b=2), call("add", a=1, b=2), "Done."]
    with model_server() as server:
        agent = agent_on(server, "add")
        Tool.objects.filter(name="add").update(calls_per_run=1)
        server.script = list(script)
        run = executed(agent)
        server.script = list(script)
        played = go_on(replay(run))

    assert played.status == "succeeded"
    assert steps_of(played) == steps_of(run)


def test_tools_that_have_changed_since_the_recording_are_named():
    with model_server() as server:
        run = recorded_sums(server)
        script = [call("add", a=1, b=2), "Done."]
        server.script = list(script)
        same = go_on(replay(run))
        Tool.objects.filter(name="add").update(config={"function": "x:y"})
        Tool.objects.filter(name="send_mail").update(config={"function": "x:y"})
        server.script = list(script)
        changed = go_on(replay(run))

    assert find_changed_tools(same) == find_changed_tools(run) == []
    assert find_changed_tools(changed) == ["add"]


def test_a_replay_by_tool_answers_other_arguments_and_marks_them():
    with model_server() as server:
        run = recorded_sums(server)
        server.script = [
            call("add", a=2, b=2),
            call("add", a=9, b=9),
            call("add", a=5, b=5),
            call("send_mail", to="ann"),
            "Done.",
        ]
        played = go_on(replay(run, "replay_by_tool"))

    assert (played.status, played.output) == ("succeeded", "Done.")
    assert answers_of(played) == [
        "add recording",
        "add other_arguments",
        "add no_recording",
        "send_mail no_recording",
    ]
    observations = [step.observation for step in played.steps.order_by("index")]
    assert observations[:2] == ["4", "3"]
    assert "no recording of this call" in observations[2]


def test_reads_without_a_recording_are_made_if_allowed():
    with model_server() as server:
        run = recorded_sums(server)
        server.script = [call("add", a=1, b=2), call("add", a=2, b=2)]
        server.script += [call("add", a=5, b=5), call("send_mail", to="x"), "Done."]
        played = go_on(replay(run, "replay_by_tool", sends_reads=True))

    assert answers_of(played) == [
        "add recording",
        "add recording",
        "add",
        "send_mail no_recording",
    ]
    assert played.steps.get(index=2).observation == "10"


def test_a_replay_continues_where_it_ended():
    with model_server() as server:
        run = recorded_sums(server)
        server.script = [call("add", a=1, b=2)]
        broken = replay(run)
        go_on(broken)  # the model does not answer the second time
        assert broken.status == "failed"
        server.script = [call("add", a=2, b=2), "Done."]
        resume_run(broken, by=broken.owner, limits={})
        resumed = go_on(broken)

    assert resumed.status == "succeeded"
    assert steps_of(resumed) == steps_of(run)
    assert answers_of(resumed) == ["add recording", "add recording"]


@pytest.mark.parametrize("kind", ["replay_strict", "hold_back"])
def test_a_run_that_lost_its_worker_arrives_at_the_same_answers(kind):
    mails.clear()
    script = [call("send_mail", to="ann"), call("send_mail", to="bob"), "Done."]
    with model_server(script=list(script)) as server:
        recorded = executed(agent_on(server, "send_mail"))
        mode = ToolMode(kind=kind, recording=recorded.pk if "re" in kind else None)
        run = start_in_mode(recorded.agent, mode)
        replies = list(script)

        def take_run_away():
            Run.objects.filter(pk=run.pk, fence=1).update(fence=F("fence") + 1)
            connection.close()

        def reply_and_lose_worker(request):
            if len(replies) > 1:
                return replies.pop(0)
            thread = Thread(target=take_run_away)
            thread.start()
            thread.join()
            return replies[0]

        server.script = reply_and_lose_worker
        go_on(run)
        assert run.status == "running"
        Run.objects.filter(pk=run.pk).update(lease_until=F("queued_at"))
        go_on(run)

    assert (run.status, run.output, run.fence) == ("succeeded", "Done.", 3)
    answered_by = "recording" if kind == "replay_strict" else "held_back"
    assert answers_of(run) == [f"send_mail {answered_by}"] * 2
    assert mails == ["ann", "bob"]
    sound()


def test_a_resumed_strict_replay_ends_again():
    with model_server() as server:
        run = recorded_sums(server)
        server.script = [call("add", a=7, b=7), "Never."]
        played = go_on(replay(run))
        resume_run(played, by=played.owner, limits={})
        again = go_on(played)

        assert server.script == ["Never."]
    assert (again.status, again.error_code) == ("failed", "not_recorded")
    sound()


def test_images_of_the_recording_are_replayed():
    with model_server() as server:
        run = recorded_sums(server)
        shown = run.steps.get(index=0)
        AgentStep.objects.filter(pk=shown.pk).update(observation="[image 1: image/png]")
        media = {"media_type": "image/png", "content": b"pixels"}
        StepMedia.objects.create(step=shown, position=1, **media)
        server.script = [call("add", a=1, b=2), call("add", a=2, b=2), "Done."]
        played = go_on(replay(run))

    (copied,) = StepMedia.objects.filter(step__run=played)
    assert (copied.step.index, bytes(copied.content)) == (0, b"pixels")


def test_a_fork_of_a_replay_is_a_replay():
    mails.clear()
    with model_server() as server:
        server.script = [call("send_mail", to="ann"), "Done."]
        run = executed(agent_on(server, "send_mail"))
        server.script = [call("send_mail", to="ann"), "Done."]
        played = go_on(replay(run))
        server.script = ["Done again."]
        point = load_fork_point(played, 2)
        fork = fork_run(point, by=run.owner, edits=ForkEdits(calls_again=True))
        forked = go_on(fork)

    assert mails == ["ann"]
    assert (forked.status, forked.tool_mode) == ("succeeded", "replay_strict")
    assert answers_of(forked) == ["send_mail recording"]


def test_only_runs_that_one_may_see_are_replayed():
    with model_server() as server:
        run = recorded_sums(server)
        mode = ToolMode(kind="replay_strict", recording=run.pk)
        stranger = agent_on(server, "add", owner=make_user())

        with pytest.raises(NotAllowed, match="not found"):
            start_in_mode(stranger, mode)


def test_a_deleted_recording_answers_nothing():
    with model_server() as server:
        run = recorded_sums(server)
        server.script = [call("add", a=1, b=2)]
        played = replay(run)
        AgentStep.objects.filter(run=run).delete()
        Run.objects.filter(pk=run.pk).delete()
        go_on(played)

    assert (played.status, played.error_code) == ("failed", "not_recorded")


def test_runs_in_a_mode_are_tests_and_send_no_webhooks():
    with model_server(script=["Done."]) as server:
        agent = agent_on(server)
        make_webhook(agent.owner)
        run = go_on(start_in_mode(agent, ToolMode(kind="hold_back")))

    assert (run.status, run.is_test) == ("succeeded", True)
    assert not Delivery.objects.exists()


def test_a_run_keeps_its_mode_when_it_is_run_again():
    with model_server(script=["Done."] * 2) as server:
        run = go_on(start_in_mode(agent_on(server), ToolMode(kind="hold_back")))
        again = start_in_mode(run.agent, None, frozen=load_frozen_agent(run))

    assert again.spec == run.spec
    assert (again.tool_mode, again.is_test) == ("hold_back", True)


def test_an_edited_call_is_replayed_by_what_the_model_requested():
    with model_server() as server:
        server.script = [call("send_mail", to="ann"), "Done."]
        agent = agent_on(server, "send_mail")
        ask_before(agent, "send_mail")
        run = executed(agent)
        approve_step(Decision.objects.get(), by=run.owner, edited_input={"to": "bob"})
        go_on(run)
        server.script = [call("send_mail", to="ann"), "Done."]
        played = go_on(replay(run))

    assert (run.status, played.status) == ("succeeded", "succeeded")
    assert played.steps.get().observation == run.steps.get().observation
    assert answers_of(played) == ["send_mail recording"]
