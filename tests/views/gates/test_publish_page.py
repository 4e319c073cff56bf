"""The page that publishes: the gate, the replay, and who may do what."""

import pytest

from runs.evaluation.gate import RuleResult
from runs.models import AgentVersion, Experiment, Gate, InputReplay
from runs.services.agents.publish import publish_agent
from runs.services.agents.save import save_agent
from runs.ui.evaluation.gate_labels import explain_unmet_rule
from tests.make import make_agent, make_run, make_tool
from tests.makers.experiments import make_examples, make_revision
from tests.makers.gates import finish_experiment, make_gate
from tests.support.html import text_of
from tools.models import Tool

pytestmark = pytest.mark.django_db

POLLS = 'hx-trigger="every 2s"'
REASON = "The customer waits, and two of three are fine."


@pytest.fixture
def agent(ann):
    agent = make_agent(ann)
    publish_agent(agent, by=ann)
    agent.parameters = {"temperature": 0.5}
    agent.save()
    return agent


def test_publishing_runs_a_gate_that_is_missing(client, agent):
    make_gate(agent)

    response = client.post(f"/agents/{agent.pk}/publish/", {"note": "Warmer"})

    page = text_of(response)
    assert "The experiment of the gate was started: 6 runs." in page
    assert "0 of 6 runs. You can leave this page." in " ".join(page.split())
    assert 'value="Warmer"' in response.content.decode()
    assert POLLS in response.content.decode()
    assert Experiment.objects.get().is_running
    assert AgentVersion.objects.count() == 1
    client.post(f"/agents/{agent.pk}/publish/")
    assert Experiment.objects.count() == 1  # pressed twice, run once


def test_a_gate_that_is_met_lets_the_draft_through(client, agent):
    make_gate(agent)
    client.post(f"/agents/{agent.pk}/publish/gate/")
    finish_experiment(Experiment.objects.get())

    page = client.get(f"/agents/{agent.pk}/publish/")
    assert "Gate met" in text_of(page)
    assert "Publish anyway" not in text_of(page)
    assert POLLS not in page.content.decode()
    response = client.post(f"/agents/{agent.pk}/publish/", {"note": "Warmer"})

    assert response.url == f"/agents/{agent.pk}/"
    assert AgentVersion.objects.count() == 2


@pytest.mark.parametrize(("wrong", "is_freed"), [(0, True), (1, False)])
def test_the_form_follows_the_end_of_the_experiment(client, agent, wrong, is_freed):
    make_gate(agent)
    url = f"/agents/{agent.pk}/publish/"
    client.post(url)
    running = client.get(url, headers={"HX-Request": "true"}).content.decode()
    assert "gate-message" not in running
    assert "gate-decision" not in running
    finish_experiment(Experiment.objects.get(), wrong=wrong)

    ended = client.get(url, headers={"HX-Request": "true"}).content.decode()

    assert 'hx-target="#gate-message"' in ended  # "Publish when it has ended" goes
    assert ("Publish version 2" in ended) is is_freed
    assert ("#gate-decision" in ended) is is_freed  # a typed reason stays


def test_a_gate_that_is_not_met_shows_each_rule_and_asks_for_a_reason(client, agent):
    make_gate(agent)
    client.post(f"/agents/{agent.pk}/publish/gate/")
    finish_experiment(Experiment.objects.get(), wrong=1)

    page = text_of(client.get(f"/agents/{agent.pk}/publish/"))
    assert "1 of 3 rules not met" in page
    assert "Pass rate not met at least 90% 100% 66.6%" in page
    short = client.post(f"/agents/{agent.pk}/publish/", {"reason": "Because."})
    assert "Enter a reason of at least 20 characters." in text_of(short)
    assert "Because." in short.content.decode()
    blank = client.post(f"/agents/{agent.pk}/publish/", {"reason": "\u200b" * 25})
    assert "Enter a reason of at least 20 characters." in text_of(blank)

    client.post(f"/agents/{agent.pk}/publish/", {"reason": REASON})
    assert AgentVersion.objects.latest("number").gate_result["reason"] == REASON


def test_a_gate_that_is_not_met_says_why_and_leads_to_what_got_worse(client, agent):
    make_gate(agent)
    client.post(f"/agents/{agent.pk}/publish/gate/")
    experiment = Experiment.objects.get()
    finish_experiment(experiment, wrong=1)
    experiment.dataset.examples.update(tags=["weekend"])

    response = client.get(f"/agents/{agent.pk}/publish/")

    page, html = " ".join(text_of(response).split()), response.content.decode()
    assert "Gate not met" in page
    assert "The pass rate is 66.6%. The gate requires 90%." in page
    assert "Fix the draft, or publish anyway with a reason." in page
    assert f'href="/experiments/{experiment.pk}/?show=worse">1 example is worse' in html
    assert "1 example is worse, tagged weekend" in page
    publish = html.split('id="gate-decision"')[1]
    assert '<button class="btn primary" disabled>' in publish
    assert "No calls in the last 7 days" in page


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (
            {"kind": "scored", "required": 9, "candidate": 7},
            "2 runs failed or have no score. The gate requires one of each run.",
        ),
        (
            {"kind": "must_pass", "required": 3, "candidate": 2, "tag": "refund"},
            "1 run tagged refund did not pass. The gate requires all.",
        ),
        (
            {"kind": "must_pass", "required": 0, "candidate": 0, "tag": "refund"},
            "No example has the tag refund, which the gate requires.",
        ),
        ({"kind": "regression"}, "The draft is worse than the published version."),
        (
            {"kind": "p95", "required": 2, "candidate": 3},
            "The p95 time is 3.0 s. The gate allows 2.0 s.",
        ),
        (
            {"kind": "p95", "required": 2},
            "No run has a time, of which the gate requires one.",
        ),
        (
            {"kind": "cost", "required": 20, "candidate": 0.03, "baseline": 0.02},
            "A run costs $0.0300 instead of $0.0200. The gate allows 20% more.",
        ),
    ],
)
def test_each_rule_says_what_the_draft_has_and_what_is_required(rule, words):
    assert explain_unmet_rule(RuleResult(is_met=False, **rule)) == words


def test_without_a_gate_the_draft_is_published_at_once(client, agent):
    assert "publishes without a gate" in text_of(
        client.get(f"/agents/{agent.pk}/publish/")
    )

    client.post(f"/agents/{agent.pk}/publish/")

    assert AgentVersion.objects.count() == 2


def test_a_draft_saved_elsewhere_is_not_published(client, agent):
    client.post(f"/agents/{agent.pk}/publish/", {"seen": "none"})

    assert AgentVersion.objects.count() == 1


def test_the_form_saves_and_removes_a_gate(client, ann, agent):
    dataset, revision = make_examples(ann, 2), make_revision(ann)
    form = {
        "dataset": dataset.pk,
        "evaluators": [revision.evaluator_id],
        "min_pass_rate": "95",
        "must_pass_tag": "t",
        "max_cost_increase": "20",
        "repetitions": 3,
        "tool_mode": "hold_back",
    }
    client.post(f"/agents/{agent.pk}/gate/", form)

    gate = Gate.objects.get()
    assert gate.rules == {
        "min_pass_rate": 0.95,
        "must_pass_tag": "t",
        "refuses_regression": False,
        "max_p95_seconds": None,
        "max_cost_increase": 20.0,
    }
    assert (gate.dataset, gate.repetitions) == (dataset, 3)
    shown = client.get(f"/agents/{agent.pk}/gate/").content.decode()
    assert 'value="95.0"' in shown
    page = client.post(f"/agents/{agent.pk}/gate/remove/").text
    assert f"Remove the gate of {agent.name}?" in page
    assert Gate.objects.exists()
    client.post(f"/agents/{agent.pk}/gate/remove/", {"sure": "1"})
    assert not Gate.objects.exists()


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("evaluators", [], "Select at least one evaluator."),
        ("min_pass_rate", "101", "100"),
        ("dataset", "999", "Select a valid choice"),
        ("repetitions", "0", "1"),
    ],
)
def test_a_wrong_field_is_named_and_nothing_is_saved(
    client, ann, agent, field, value, words
):
    form = {
        "dataset": make_examples(ann, 1).pk,
        "evaluators": [make_revision(ann).evaluator_id],
        "min_pass_rate": "90",
        "repetitions": 1,
        "tool_mode": "hold_back",
    }
    response = client.post(f"/agents/{agent.pk}/gate/", {**form, field: value})

    assert words in text_of(response)
    assert not Gate.objects.exists()


def test_the_replay_says_which_tools_have_changed_and_what_is_not_held_back(
    client, ann
):
    found, kept = make_tool(ann, name="find"), make_tool(ann, name="keep")
    agent = make_agent(ann, tools=(found, kept))
    version = publish_agent(agent, by=ann)
    page = " ".join(text_of(client.get(f"/agents/{agent.pk}/publish/")).split())
    assert "Tools changed since the recording" not in page
    assert "Not held back: the model server, and what Python modules" in page

    make_run(agent=agent, version=version, status="succeeded")
    Tool.objects.filter(pk=found.pk).update(config={"function": "tests.no:else"})
    page = " ".join(text_of(client.get(f"/agents/{agent.pk}/publish/")).split())

    assert "Tools changed since the recording: find." in page


def test_real_inputs_are_replayed_and_compared(client, ann, agent):
    run = make_run(agent=agent, version=agent.versions.get(), status="succeeded")

    client.post(f"/agents/{agent.pk}/publish/replay/", {"count": "5"})

    page = client.get(f"/agents/{agent.pk}/publish/").content.decode()
    assert "Replay of the last real input" in page
    assert f"/runs/compare/?a={run.pk}" in page


@pytest.mark.parametrize("count", ["", "0", "51", "many"])
def test_a_wrong_number_of_inputs_starts_nothing(client, agent, count):
    response = client.post(
        f"/agents/{agent.pk}/publish/replay/", {"count": count}, follow=True
    )

    assert "Enter a number of inputs from 1 to 50." in text_of(response)
    assert not InputReplay.objects.exists()


def test_without_real_runs_the_page_says_so(client, agent):
    response = client.post(
        f"/agents/{agent.pk}/publish/replay/", {"count": "5"}, follow=True
    )

    assert "No published version has been run" in text_of(response)


def test_the_words_that_changed_are_marked(client, agent):
    save_agent(agent, uses=[], instructions="Name the <place>.\nAnswer {input}.")
    publish_agent(agent, by=agent.owner)
    save_agent(agent, uses=[], instructions="Name the <time>.\nAnswer {input}.")

    page = client.get(f"/agents/{agent.pk}/publish/").content.decode()

    assert '<span class="same">Answer <span class="v">{input}</span>.</span>' in page
    assert "Name the &lt;<del>place</del>&gt;." in page
    assert "Name the &lt;<ins>time</ins>&gt;." in page
