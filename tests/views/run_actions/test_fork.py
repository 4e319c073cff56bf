"""The page that forks a run."""

import json
from decimal import Decimal

import pytest

from runs.engine.types import ExecutorOptions
from runs.models import AgentTool, Conversation, Resume, Run
from runs.store.specs import load_spec
from tests.make import (
    make_agent,
    make_call,
    make_provider,
    make_run,
    make_spec,
    make_step,
    make_tool,
    make_user,
)
from tools.spec import ToolSpec

pytestmark = pytest.mark.django_db


def two_rounds(owner, **fields) -> Run:
    run = make_run(owner, status="succeeded", **fields)
    make_call(run)
    make_step(run, elapsed=0.1)
    make_call(run, reply={"text": "It is 4."})
    return run


def typed(client, run, row) -> dict[str, str]:
    """Return what the form holds, as a browser would send it."""
    context = client.get(f"/runs/{run.pk}/fork/{row}/").context
    found = {}
    for form in (context["form"], context["limits"]):
        for bound in form:
            value = bound.value()
            if value not in (None, False):
                found[bound.html_name] = str(value)
    return found


def fork(client, run, row, **changes):
    url = f"/runs/{run.pk}/fork/{row}/"
    return client.post(url, typed(client, run, row) | changes)


def newest() -> Run:
    return Run.objects.order_by("-pk")[0]


def test_shows_the_step_with_its_result_and_what_is_reused(client, ann):
    text = client.get(f"/runs/{two_rounds(ann).pk}/fork/2/").content.decode()

    assert "Fork at step 2" in text
    assert "Step 1 is reused" in text
    assert ">\n4</textarea>" in text


def test_the_reply_that_asked_for_a_step_is_not_paid_again(client, ann):
    run = make_run(ann, status="succeeded")
    for cost in ("0.01", "0.20"):
        make_call(run, cost=Decimal(cost))
        make_step(run)
    address = f"/runs/{run.pk}/fork"

    assert client.get(f"{address}/3/").context["kept"].cost == Decimal("0.01")
    assert client.get(f"{address}/4/").context["kept"].cost == Decimal("0.21")


def test_says_which_calls_behind_the_step_keep_their_results(client, ann):
    run = make_run(ann, status="succeeded")
    call = make_call(run)
    for status in ("succeeded", "succeeded", "failed"):
        make_step(run, call=call, status=status)
    text = client.get(f"/runs/{run.pk}/fork/2/").content.decode()
    last = client.get(f"/runs/{run.pk}/fork/4/").content.decode()

    assert "2 later calls of the same reply</b> keep their results." in text
    assert "of the same reply</b>" not in last


def test_hides_what_is_someone_elses(client, ann):
    run = two_rounds(make_user("bob"))

    assert client.get(f"/runs/{run.pk}/fork/2/").status_code == 404
    assert client.post(f"/runs/{run.pk}/fork/2/").status_code == 404


def test_a_step_that_is_not_there_leads_back_to_the_run(client, ann):
    run = two_rounds(ann)
    answer = client.get(f"/runs/{run.pk}/fork/9/", follow=True)

    assert "Step not found." in answer.content.decode()


def test_an_edited_result_starts_a_fork(client, ann):
    run = two_rounds(ann)
    answer = fork(client, run, 2, observation="five")

    assert answer["Location"] == f"/runs/{newest().pk}/"
    assert newest().steps.get().observation == "five"
    assert newest().fork_edits == ["observation"]


def test_nothing_changed_makes_no_edit(client, ann):
    run = two_rounds(ann)
    fork(client, run, 3)

    assert newest().forked_from == run
    assert newest().fork_edits == []
    assert newest().spec == run.spec


def test_a_written_reply_is_used(client, ann):
    calls = json.dumps([{"name": "add", "arguments": {"a": 1}}])
    fork(client, two_rounds(ann), 3, at_call="write", reply_calls=calls)
    reply = newest().calls.last().reply

    assert reply["text"] == "It is 4."
    assert reply["tool_calls"][0]["arguments"] == '{"a": 1}'


def test_prompt_model_tools_and_limits_are_changed(client, ann):
    provider = make_provider(ann)
    tools = tuple(ToolSpec(name=name) for name in ("keep", "drop"))
    spec = make_spec(tools=tools, prompt={"template": "Do {input}"})
    run = two_rounds(ann, spec=spec)
    extra = make_tool(ann)
    fork(
        client,
        run,
        3,
        **{
            "prompt-0": "Do well: {input}",
            "provider": str(provider.pk),
            "model": "other",
            "parameters": '{"seed": 3}',
            "tool-keep": "ask",
            "tool-drop": "off",
            f"tool-{extra.name}": "allow",
            "max_iterations": "30",
            "tokens": "5000",
        },
    )
    new = load_spec(newest().spec)

    assert new.prompt.template == "Do well: {input}"
    assert (new.model.model, new.model.provider_id) == ("other", provider.pk)
    assert new.model.parameters == {"seed": 3}
    assert [(t.name, t.asks) for t in new.tools] == [
        ("keep", True),
        (extra.name, False),
    ]
    assert new.executor.max_iterations == 30
    assert new.executor.budget.tokens == 5000
    assert newest().fork_edits == ["prompt", "model", "tools", "limits"]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        pytest.param({"parameters": "{"}, "Not valid JSON. Line 1", id="parameters"),
        pytest.param({"parameters": "[]"}, "Enter a JSON object", id="no object"),
        pytest.param({"model": ""}, "Enter a model.", id="no model"),
        pytest.param(
            {"at_call": "write", "reply_calls": "{}"}, "Enter a list", id="no list"
        ),
        pytest.param(
            {"at_call": "write", "reply_calls": "[1 2]"},
            "Not valid JSON. Line 1, column 4: a comma or a closing bracket is",
            id="no json",
        ),
        pytest.param(
            {"at_call": "write", "reply_calls": '[{"nam": 1}]'},
            "Enter a list",
            id="no call",
        ),
        pytest.param(
            {"at_call": "write", "reply_text": ""}, "Enter a reply", id="no reply"
        ),
        pytest.param({"max_iterations": "0"}, "1 or more", id="no round"),
        pytest.param({"max_iterations": "1"}, "keeps 1 round.", id="used up"),
        pytest.param({"prompt-1": "Do {city}"}, "has no value for", id="variable"),
        pytest.param({"prompt-1": "Do {a b}"}, "is not a variable", id="brace"),
    ],
)
def test_what_is_wrong_is_said_and_what_was_typed_stays(client, ann, changes, says):
    run = two_rounds(ann)
    answer = fork(client, run, 3, **changes)

    assert answer.status_code == 200
    assert says in answer.content.decode()
    assert Run.objects.count() == 1


def test_a_step_before_a_resume_with_more_rounds_proposes_more(client, ann):
    spec = make_spec(executor=ExecutorOptions(max_iterations=1))
    run = two_rounds(ann, spec=spec)
    more = {"max_iterations": 5}
    Resume.objects.create(run=run, at_index=1, at_number=1, limits=more, by=ann)

    assert typed(client, run, 2)["max_iterations"] == "2"
    assert fork(client, run, 2, observation="5").status_code == 302
    assert typed(client, run, 1)["max_iterations"] == "1"


def test_who_may_only_use_the_agent_sees_no_prompt_and_can_change_none(client, ann):
    agent = make_agent(make_user("bob"), visibility="everyone")
    run = two_rounds(ann, agent=agent)
    text = client.get(f"/runs/{run.pk}/fork/3/").content.decode()
    client.post(
        f"/runs/{run.pk}/fork/3/",
        {"prompt-0": "Obey me", "at_call": "write", "reply_text": "x", "model": "y"},
    )

    assert 'name="prompt-0"' not in text
    assert 'name="reply_text"' not in text
    assert load_spec(newest().spec) == load_spec(run.spec)


def test_a_failed_run_can_go_on_after_its_last_step(client, ann):
    run = make_run(ann, status="failed", error_message="The server said no.")
    make_call(run)
    make_step(run, elapsed=0.1)
    text = client.get(f"/runs/{run.pk}/fork/").content.decode()
    fork(client, run, 3, model="other")

    assert "Continue after the last step" in text
    assert "The server said no." in text
    assert newest().fork_edits == ["model"]
    assert newest().next_index == 1


def test_the_inputs_are_changed(client, ann):
    run = two_rounds(ann)
    fork(client, run, 3, input="What is 3 + 3?")

    assert newest().inputs == {"input": "What is 3 + 3?"}
    assert newest().fork_edits == ["inputs"]


def test_a_variable_that_the_prompt_gets_here_can_be_given_here(client, ann):
    run = two_rounds(ann)
    asked = fork(client, run, 3, **{"prompt-1": "Do {input} in {city}"})
    assert 'name="in-city"' in asked.content.decode()
    fork(client, run, 3, **{"prompt-1": "Do {input} in {city}", "in-city": "Rome"})

    assert newest().inputs == {**run.inputs, "city": "Rome"}
    empty = fork(client, run, 3, input=" ")
    assert "Enter a message" in empty.content.decode()


def test_agents_can_be_added_and_taken_away(client, ann):
    run = two_rounds(ann)
    helper, caller = make_agent(ann, name="helper"), make_agent(ann)
    AgentTool.objects.create(agent=caller, sub_agent=run.agent)
    page = client.get(f"/runs/{run.pk}/fork/3/").content.decode()
    fork(client, run, 3, **{f"agent-{helper.slug}": "ask"})
    one = newest()
    fork(client, one, 2, **{f"agent-{helper.slug}": "off"})

    assert f'name="agent-{helper.slug}"' in page
    assert f'name="agent-{caller.slug}"' not in page
    assert f'name="agent-{run.agent.slug}"' not in page
    (tool,) = load_spec(one.spec).tools
    assert (tool.kind, tool.config["agent_id"], tool.asks) == ("agent", helper.pk, True)
    assert load_spec(newest().spec).tools == ()


def test_says_what_becomes_of_the_conversation(client, ann):
    run = two_rounds(ann)
    address = f"/runs/{run.pk}/fork/3/"
    assert "conversation" not in client.get(address).content.decode()
    conversation = Conversation.objects.create(owner=ann, agent=run.agent)
    Run.objects.filter(pk=run.pk).update(conversation=conversation)
    assert "The conversation branches" in client.get(address).content.decode()

    client.force_login(make_user("root", is_superuser=True))
    assert "It is not part of a conversation" in client.get(address).content.decode()


def test_says_how_many_rounds_are_left_where_it_forks(client, ann):
    options = ExecutorOptions(max_iterations=3)
    run = two_rounds(ann, spec=make_spec(executor=options))
    text = client.get(f"/runs/{run.pk}/fork/2/").content.decode()

    assert "had a limit of 3 rounds here." in text
    assert "1 reused round counts toward the limit." in text
    assert "2 rounds are left." in text


def test_says_where_no_round_is_left(client, ann):
    options = ExecutorOptions(max_iterations=1)
    run = two_rounds(ann, spec=make_spec(executor=options))
    text = client.get(f"/runs/{run.pk}/fork/2/").content.decode()

    assert "No rounds are left, so twice as many are proposed." in text
