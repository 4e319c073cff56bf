"""`POST /api/v1/runs`."""

import pytest

from runs.models import Conversation, Run
from runs.services.agents.publish import publish_agent
from tests.api.make_client import Api, fields_of
from tests.make import make_agent, make_prompt, make_run, make_user

pytestmark = pytest.mark.django_db

QUESTION = {"input": "What is 1 + 2?"}


def test_starts_the_published_agent():
    ann = make_user()
    version = publish_agent(make_agent(ann, slug="adder"), by=ann)

    answer = Api(ann).post("runs", {"agent": "adder", "inputs": QUESTION})

    assert answer.status_code == 201
    said = answer.json()
    run = Run.objects.get(pk=said["id"])
    assert (run.status, run.source, run.owner) == ("queued", "api", ann)
    assert run.version == version
    assert answer.headers["Location"] == f"/api/v1/runs/{run.pk}"
    assert said == Api(ann).get(f"runs/{run.pk}").json()


def test_too_many_unfinished_runs_have_to_wait(settings):
    settings.USER_RUNS = 2
    ann = make_user()
    agent = make_agent(ann, slug="adder")
    for status in ("running", "succeeded", "awaiting_approval"):
        make_run(ann, agent=agent, status=status)
    make_run(status="running")
    body = {"agent": "adder", "inputs": QUESTION}

    answers = [Api(ann).post("runs", body) for _ in range(3)]

    assert [answer.status_code for answer in answers] == [201, 429, 429]
    assert answers[1].headers["Retry-After"] == "10"
    assert answers[1].json()["detail"] == (
        "You already have 2 unfinished runs. Try again after some of them end."
    )
    assert Run.objects.filter(owner=ann).count() == 4


@pytest.mark.parametrize(
    ("body", "status", "fields"),
    [
        pytest.param(b"{", 400, ["body"], id="not-json"),
        pytest.param(b"", 400, ["body"], id="empty"),
        pytest.param(b"\xff", 400, ["body"], id="not-utf8"),
        pytest.param(
            b'{"agent": "adder", "agent": "b", "inputs": {}}',
            400,
            ["body"],
            id="name-twice",
        ),
        pytest.param(
            b'{"agent": "adder", "inputs": {"input": {"a": 1, "\\u0061": 2}}}',
            400,
            ["body"],
            id="name-twice-inside",
        ),
        pytest.param(
            b'{"agent": "adder", "inputs": {"input": NaN}}', 400, ["body"], id="nan"
        ),
        pytest.param(
            b'{"agent": "adder", "inputs": {"input": -Infinity}}',
            400,
            ["body"],
            id="infinity",
        ),
        pytest.param(
            b'{"agent": "adder", "inputs": {"input": 1e999}}',
            400,
            ["body"],
            id="infinite-number",
        ),
        pytest.param(b'{"a":' * 200_000, 400, ["body"], id="deep"),
        pytest.param([1], 422, ["body"], id="no-object"),
        pytest.param({}, 422, ["agent"], id="no-agent"),
        pytest.param({"agent": 5}, 422, ["agent"], id="agent-number"),
        pytest.param({"agent": "a\0b"}, 422, ["agent"], id="agent-nul"),
        pytest.param({"agent": "nobody"}, 422, ["agent"], id="agent-unknown"),
        pytest.param({"agent": "adder"}, 422, ["inputs.input"], id="input-missing"),
        pytest.param(
            {"agent": "adder", "inputs": {**QUESTION, "city": "x"}},
            422,
            ["inputs.city"],
            id="input-unknown",
        ),
        pytest.param(
            {"agent": "adder", "inputs": {"input": [1]}},
            422,
            ["inputs.input"],
            id="input-no-text",
        ),
        pytest.param(
            {"agent": "adder", "inputs": "hi"}, 422, ["inputs"], id="inputs-text"
        ),
        pytest.param(
            {"agent": "adder", "inputs": QUESTION, "modle": 1, "x": 2},
            422,
            ["modle", "x"],
            id="unknown-fields",
        ),
        pytest.param(
            {"agent": "adder", "inputs": QUESTION, "conversation": 99},
            422,
            ["conversation"],
            id="conversation-unknown",
        ),
        pytest.param(
            {"agent": "adder", "inputs": QUESTION, "conversation": 10**30},
            422,
            ["conversation"],
            id="conversation-huge",
        ),
    ],
)
def test_names_what_is_wrong(body, status, fields):
    ann = make_user()
    make_agent(ann, slug="adder")

    answer = Api(ann).post("runs", body)

    assert (answer.status_code, fields_of(answer)) == (status, fields)
    assert not Run.objects.exists()


def test_an_agent_of_a_stranger_is_unknown():
    make_agent(slug="secret")

    answer = Api(make_user()).post("runs", {"agent": "secret", "inputs": QUESTION})

    assert (answer.status_code, fields_of(answer)) == (422, ["agent"])


def test_an_agent_that_everyone_may_use_runs():
    make_agent(slug="open", visibility="everyone")

    answer = Api(make_user()).post("runs", {"agent": "open", "inputs": QUESTION})

    assert answer.status_code == 201


def test_an_archived_agent_is_unknown():
    ann = make_user()
    agent = make_agent(ann, slug="old")
    agent.archived_at = agent.created_at
    agent.save()

    answer = Api(ann).post("runs", {"agent": "old", "inputs": QUESTION})

    assert (answer.status_code, fields_of(answer)) == (422, ["agent"])


def test_an_agent_that_could_not_run_says_why():
    ann = make_user()
    prompt = make_prompt(ann, kind="react", template="no place for steps")
    make_agent(ann, slug="adder", kind="react", prompt=prompt)

    answer = Api(ann).post("runs", {"agent": "adder", "inputs": QUESTION})

    assert answer.status_code == 422
    assert fields_of(answer) == ["agent.prompt"]


def test_takes_text_of_every_kind():
    ann = make_user()
    make_agent(ann, slug="adder")

    text = rb'"\u0000 \u5317 \ud83d\ude00"'
    answer = Api(ann).post("runs", b'{"agent":"adder","inputs":{"input":%s}}' % text)

    assert answer.status_code == 201
    assert "北 😀" in Run.objects.get().inputs["input"]


def test_continues_a_conversation():
    ann = make_user()
    agent = make_agent(ann, slug="adder")
    conversation = Conversation.objects.create(owner=ann, agent=agent)

    answer = Api(ann).post(
        "runs", {"agent": "adder", "inputs": QUESTION, "conversation": conversation.pk}
    )

    assert answer.status_code == 201
    assert answer.json()["conversation"] == conversation.pk


def test_a_run_of_an_agent_with_memory_names_the_conversation_it_begins():
    ann = make_user()
    make_agent(ann, slug="adder", memory=True)
    body = {"agent": "adder", "inputs": QUESTION}

    first = Api(ann).post("runs", body).json()["conversation"]
    again = Api(ann).post("runs", body | {"conversation": first}).json()
    other = Api(ann).post("runs", body).json()["conversation"]

    assert first is not None
    assert again["conversation"] == first != other


def test_a_conversation_of_another_is_unknown():
    ann = make_user()
    agent = make_agent(ann, slug="adder")
    conversation = Conversation.objects.create(owner=make_user(), agent=agent)

    answer = Api(ann).post(
        "runs", {"agent": "adder", "inputs": QUESTION, "conversation": conversation.pk}
    )

    assert (answer.status_code, fields_of(answer)) == (422, ["conversation"])


def test_the_same_key_gives_the_same_run():
    api, body = adder()

    first = api.post("runs", body, Idempotency_Key="k1")
    again = api.post("runs", body, Idempotency_Key="k1")

    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["id"] == again.json()["id"]
    assert Run.objects.count() == 1


def test_the_same_key_with_another_body_is_a_conflict():
    api, body = adder()
    api.post("runs", body, Idempotency_Key="k1")

    answer = api.post("runs", {**body, "inputs": {"input": "?"}}, Idempotency_Key="k1")

    assert (answer.status_code, fields_of(answer)) == (409, ["Idempotency-Key"])


def test_a_body_that_means_the_same_is_the_same():
    api, _ = adder()

    one = api.post(
        "runs", b'{"agent":"adder","inputs":{"input":"a"}}', Idempotency_Key="k"
    )
    two = api.post(
        "runs", b'{ "inputs": {"input":"a"}, "agent":"adder" }', Idempotency_Key="k"
    )

    assert (one.status_code, two.status_code) == (201, 200)


@pytest.mark.parametrize("key", ["", "x" * 201, "a\tb"])
def test_an_odd_key_is_refused(key):
    api, body = adder()

    answer = api.post("runs", body, Idempotency_Key=key)

    assert (answer.status_code, fields_of(answer)) == (422, ["Idempotency-Key"])
    assert not Run.objects.exists()


def test_a_body_too_long_is_refused():
    api, body = adder()

    answer = api.post("runs", {**body, "inputs": {"input": "x" * 3_000_000}})

    assert (answer.status_code, fields_of(answer)) == (413, ["body"])
    assert "larger than 2.5 MB" in answer.json()["detail"]


def adder() -> tuple[Api, dict[str, object]]:
    """Make an agent; return its owner's client and a body that starts it."""
    ann = make_user()
    make_agent(ann, slug="adder")
    return Api(ann), {"agent": "adder", "inputs": QUESTION}


def test_the_detail_names_each_field():
    said = Api(make_user()).post("runs", {"agent": "a", "foo": 1, "bar": 2}).json()

    assert "foo: Unknown field. bar: Unknown field." in said["detail"]


def test_starts_a_replay_that_names_its_recording():
    ann = make_user()
    agent = make_agent(ann, slug="adder")
    recorded = make_run(ann, agent=agent, status="succeeded")
    mode = {"kind": "replay_strict", "recording": recorded.pk}
    body = {"agent": "adder", "inputs": QUESTION, "tool_mode": mode}

    said = Api(ann).post("runs", body, Idempotency_Key="k").json()

    assert said["tool_mode"] == mode
    run = Run.objects.get(pk=said["id"])
    assert (run.tool_mode, run.is_test) == ("replay_strict", True)
    assert Api(ann).post("runs", body, Idempotency_Key="k").json()["id"] == run.pk
    other = {**body, "tool_mode": {"kind": "hold_back"}}
    assert Api(ann).post("runs", other, Idempotency_Key="k").status_code == 409
    assert "tool_mode" not in Api(ann).get(f"runs/{recorded.pk}").json()


@pytest.mark.parametrize(
    ("mode", "field"),
    [
        ({"kind": "replay_strict", "recording": 10**9}, "tool_mode.recording"),
        ({"kind": "replay_strict", "recording": 2**63}, "tool_mode.recording"),
        ({"kind": "replay_strict"}, "tool_mode"),
        ({"kind": "hold_back", "recording": 1}, "tool_mode"),
        ({"kind": "replay_by_tool", "recording": "1"}, "tool_mode.recording"),
        ({"kind": "live"}, "tool_mode.kind"),
        ({"kind": "hold_back", "dry": True}, "tool_mode.dry"),
        ({"kind": "hold_back", "sends_reads": True}, "tool_mode"),
    ],
)
def test_refuses_a_tool_mode_that_cannot_be(mode, field):
    ann = make_user()
    make_agent(ann, slug="adder")
    body = {"agent": "adder", "inputs": QUESTION, "tool_mode": mode}

    answer = Api(ann).post("runs", body)

    assert (answer.status_code, fields_of(answer)) == (422, [field])
    assert not Run.objects.exists()


def test_a_recording_of_others_is_not_found():
    ann, bob = make_user(), make_user()
    make_agent(ann, slug="adder")
    mode = {"kind": "replay_by_tool", "recording": make_run(bob).pk}

    answer = Api(ann).post(
        "runs", {"agent": "adder", "inputs": QUESTION, "tool_mode": mode}
    )

    assert (answer.status_code, fields_of(answer)) == (422, ["tool_mode.recording"])
