"""Datasets, evaluators, gates and their results in agent files."""

import json

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from runs.evaluation.gate import GateResult
from runs.models import (
    Agent,
    AgentTool,
    Dataset,
    Evaluator,
    Experiment,
    Gate,
    PromptTemplate,
    Provider,
    Run,
)
from runs.services.accounts.tokens import create_token
from runs.services.agentfile.export import ExportTooLarge, export_agentfile
from runs.services.agentfile.load import ImportResult, import_agentfile
from runs.services.agentfile.text import AgentFileRefused, parse_json_or_yaml
from runs.services.agents.publish import publish_agent, publish_draft
from runs.services.datasets.content import ExampleContent
from runs.services.datasets.edit import add_examples
from runs.services.datasets.save_version import save_dataset_version
from runs.services.evaluators.save import save_evaluator
from runs.services.experiments.create import (
    CandidateChoice,
    ExperimentPlan,
    create_experiment,
)
from runs.services.gates.run import start_gate_experiment
from runs.services.gates.state import load_gate_state
from runs.services.spec.freeze import freeze_agent
from tests.make import (
    make_agent,
    make_dataset,
    make_prompt,
    make_provider,
    make_tool,
    make_user,
)
from tests.makers.experiments import make_revision
from tests.makers.gates import finish_experiment, make_gate
from tools.models import Tool

pytestmark = pytest.mark.django_db

HTTP = {"url": "https://a.example/good", "method": "GET"}
REASON = "The customer waits, and two of three are fine."


@pytest.fixture
def agent() -> Agent:
    ann = make_user("ann")
    agent = make_agent(ann, prompt=make_prompt(ann, slug="words"), slug="refunds")
    make_gate(agent, must_pass_tag="t")
    return agent


def test_a_gate_without_evaluators_is_not_exported_and_not_met(agent):
    publish_with_gate(agent)
    agent.gate.evaluators.all().delete()

    assert "gate:" not in export_agentfile(["refunds"])
    assert load_gate_state(agent, freeze_agent(agent)).status == "missing"


def publish_with_gate(agent: Agent, *, wrong: int = 0, reason: str = "") -> None:
    experiment = start_gate_experiment(agent.gate, by=agent.owner)
    finish_experiment(experiment, wrong=wrong)
    publish_draft(agent, by=agent.owner, reason=reason)


def add_judge_to_gate(agent: Agent, critic: Provider) -> None:
    config = {"provider": critic.slug, "model": "m", "rubric": "Is it helpful?"}
    judge = make_revision(agent.owner, name="Helpful", kind="judge", config=config)
    agent.gate.evaluators.add(judge.evaluator)


def empty_site() -> User:
    """Delete all that the file contains, as on another site; return its owner."""
    Experiment.objects.all().delete()
    Run.objects.all().delete()
    Gate.objects.all().delete()
    AgentTool.objects.all().delete()
    for model in (Agent, PromptTemplate, Dataset, Evaluator, Tool):
        model.objects.all().delete()
    return User.objects.get(username="ann")


def change(text: str, edit) -> str:
    file = parse_json_or_yaml(text)
    edit(file)
    return json.dumps(file)


def test_what_is_exported_imports_back_to_the_same(agent):
    publish_with_gate(agent)
    text = export_agentfile(["refunds"])
    assert import_agentfile(text, agent.owner) == ImportResult([], [], [])

    done = import_agentfile(text, empty_site())

    assert done.published == ["agent refunds"]
    [dataset] = Dataset.objects.all()
    assert (dataset.version, dataset.examples.count()) == (1, 3)
    assert Gate.objects.get().rules["must_pass_tag"] == "t"
    assert import_agentfile(text, dataset.owner) == ImportResult([], [], [])
    again, before = map(parse_json_or_yaml, (export_agentfile(["refunds"]), text))
    assert again["datasets"] == before["datasets"]
    assert again["evaluators"] == before["evaluators"]
    assert again["agents"][0]["gate"] == before["agents"][0]["gate"]


def test_the_result_comes_along_with_where_it_is_from(agent, settings):
    settings.PUBLIC_URL = "https://a.example"
    publish_with_gate(agent)

    import_agentfile(export_agentfile(["refunds"]), empty_site())

    version = Agent.objects.get().versions.get()
    result = GateResult.model_validate(version.gate_result)
    assert (result.is_met, result.origin, result.runs) == (
        *(True, "https://a.example", 3),
    )


def test_an_agent_that_was_edited_in_the_file_is_not_published(agent):
    publish_with_gate(agent)

    def edit(file):
        file["prompts"][0]["messages"][0]["template"] = "Be rude."

    done = import_agentfile(change(export_agentfile(), edit), empty_site())

    assert done.published == []
    assert "refunds has changed since its gate was met" in done.missing[0]
    assert "was not published, because its gate is not met" in done.missing[1]
    assert not Agent.objects.get().versions.exists()


def test_the_result_is_left_out_once_a_tool_has_changed(agent):
    tool = make_tool(agent.owner, slug="look", kind="http", config=dict(HTTP))
    AgentTool.objects.create(agent=agent, tool=tool)
    publish_with_gate(agent)
    assert "gate_result" in export_agentfile(["refunds"])

    Tool.objects.update(config=HTTP | {"url": "https://a.example/other"})
    text = export_agentfile(["refunds"])
    done = import_agentfile(text, empty_site())

    assert "gate_result" not in text
    assert '# "refunds"' in text.split("agentfile:")[0]
    assert done.published == []
    assert "was not published, because its gate is not met" in done.missing[0]


@pytest.fixture
def caller(agent) -> Agent:
    """The agent with a published gate calls another one, which calls a third."""
    ann = agent.owner
    third = make_agent(ann, slug="third", prompt=make_prompt(ann, slug="third-words"))
    helper = make_agent(ann, slug="helper", prompt=make_prompt(ann, slug="help-words"))
    AgentTool.objects.create(agent=helper, sub_agent=third)
    AgentTool.objects.create(agent=agent, sub_agent=helper)
    for one in (third, helper):
        publish_agent(one, by=ann)
    publish_with_gate(agent)
    return agent


def test_the_result_comes_along_with_called_agents(caller):
    done = import_agentfile(export_agentfile(["refunds"]), empty_site())

    assert sorted(done.published) == ["agent helper", "agent refunds", "agent third"]
    assert done.missing == ()


@pytest.mark.parametrize("prompt", ["help-words", "third-words"])
def test_a_called_agent_that_was_edited_in_the_file_ends_the_result(caller, prompt):
    def edit(file):
        [words] = [one for one in file["prompts"] if one["slug"] == prompt]
        words["messages"][0]["template"] = "Be rude."

    done = import_agentfile(change(export_agentfile(["refunds"]), edit), empty_site())

    assert "agent refunds" not in done.published
    assert "refunds has changed since its gate was met" in done.missing[0]


def test_the_result_is_left_out_once_a_called_agent_has_changed(caller):
    third = Agent.objects.get(slug="third")
    third.parameters = {"temperature": 0.5}
    third.save()
    publish_agent(third, by=third.owner)

    assert "gate_result" not in export_agentfile(["refunds"])


def test_the_result_does_not_count_if_a_called_agent_keeps_another_version(caller):
    text = export_agentfile(["refunds"])
    ann = empty_site()
    there = make_agent(ann, slug="helper", prompt=make_prompt(ann, slug="old"))
    publish_agent(there, by=ann)
    make_gate(there)

    done = import_agentfile(text, ann)

    assert "agent refunds" not in done.published
    assert "runs another version than that of the file" in "\n".join(done.missing)


def edit_example(file):
    file["datasets"][0]["examples"][0]["expected_answer"] = "no"


def edit_evaluator(file):
    file["evaluators"][0]["config"] = {"ignore_case": False}


def edit_rules(file):
    file["agents"][0]["gate"]["rules"]["min_pass_rate"] = 0.1


@pytest.mark.parametrize("edit", [edit_example, edit_evaluator])
def test_a_result_of_other_examples_or_evaluators_does_not_count(agent, edit):
    publish_with_gate(agent)

    done = import_agentfile(change(export_agentfile(), edit), empty_site())

    assert done.published == []
    assert "the rules, examples or evaluators of the gate of refunds" in done.missing[0]
    assert not Agent.objects.get().versions.exists()


def test_a_result_of_other_rules_does_not_count(agent):
    publish_with_gate(agent)

    done = import_agentfile(change(export_agentfile(), edit_rules), empty_site())

    assert done.published == []
    assert "refunds has changed since its gate was met" in done.missing[0]


def test_a_gate_that_was_changed_after_publishing_is_not_met_elsewhere(agent):
    publish_with_gate(agent)
    Gate.objects.update(rules=agent.gate.rules | {"max_p95_seconds": 0.001})

    done = import_agentfile(export_agentfile(["refunds"]), empty_site())

    assert done.published == []
    assert "of the gate of refunds have changed" in done.missing[0]


def test_an_imported_result_ends_with_a_change_of_an_evaluator(agent):
    publish_with_gate(agent)
    text = export_agentfile()
    import_agentfile(text, empty_site())
    there = Agent.objects.get()
    spec = freeze_agent(there)
    assert load_gate_state(there, spec).status == "met"

    evaluator = Evaluator.objects.get()
    evaluator.config = {"ignore_case": False}
    save_evaluator(evaluator, by=there.owner)

    assert load_gate_state(there, spec).status == "missing"


def test_what_was_published_for_a_reason_is_not_published_elsewhere(agent):
    publish_with_gate(agent, wrong=1, reason=REASON)
    text = export_agentfile()
    assert REASON in " ".join(text.split())

    done = import_agentfile(text, empty_site())

    assert done.published == []
    assert Gate.objects.get().imported_result["reason"] == REASON


def test_an_upload_does_not_accept_results(agent):
    publish_with_gate(agent)

    import_agentfile(export_agentfile(), empty_site(), inert=True)

    assert Gate.objects.get().imported_result is None


def test_changed_examples_are_the_next_version(agent):
    publish_with_gate(agent)

    def edit(file):
        file["datasets"][0]["examples"][0]["expected_answer"] = "no"

    done = import_agentfile(change(export_agentfile(), edit), agent.owner)

    dataset = Dataset.objects.get()
    assert done.updated == [f"dataset {dataset.slug}"]
    saved = dataset.versions.first()
    assert (saved.number, saved.added, saved.removed) == (2, 1, 1)


def test_unsaved_examples_are_not_saved_by_an_import(agent):
    publish_with_gate(agent)
    text = export_agentfile()
    content = ExampleContent(inputs={"input": "more"})
    add_examples(Dataset.objects.get(), [content], by=agent.owner)

    with pytest.raises(AgentFileRefused, match="has unsaved changes here"):
        import_agentfile(text, agent.owner)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (
            lambda file: file["agents"][0]["gate"].update(dataset="nothing"),
            r"agents\[0\].gate.dataset: There is no dataset 'nothing'",
        ),
        (
            lambda file: file["evaluators"][0].update(kind="luck"),
            r"evaluators\[0\].kind: Unknown kind",
        ),
        (
            lambda file: file["evaluators"][0].update(config={"needs": "luck"}),
            r"evaluators\[0\].config.needs",
        ),
        (
            lambda file: file["datasets"][0]["examples"][0].update(inputs={}),
            r"datasets\[0\].examples",
        ),
        (
            lambda file: file["agents"][0]["gate"]["rules"].update(min_pass_rate=2),
            r"agents\[0\].gate.rules.min_pass_rate",
        ),
    ],
)
def test_a_wrong_entry_is_named_and_nothing_is_imported(agent, edit, words):
    publish_with_gate(agent)
    text = change(export_agentfile(), edit)

    with pytest.raises(AgentFileRefused, match=words):
        import_agentfile(text, empty_site())
    assert not Agent.objects.exists()


def test_a_draft_of_an_agent_without_a_gate_is_published_as_before():
    agent = make_agent(make_user("ann"))
    publish_agent(agent, by=agent.owner)

    assert "gate" not in export_agentfile()


def evaluate_elsewhere(
    agent: Agent, name: str, *, count: int = 1, owner: User | None = None, **one
) -> Experiment:
    """Run an experiment with the agent on another dataset, with its own evaluator."""
    owner = owner or agent.owner
    dataset = make_dataset(owner, name=name)
    add_examples(
        dataset,
        [ExampleContent(inputs={"input": f"q{n}"}, **one) for n in range(count)],
        by=owner,
    )
    save_dataset_version(dataset, seen=0, by=owner)
    dataset.refresh_from_db()
    revision = make_revision(owner, name=f"{name} check")
    candidates = [CandidateChoice(agent)]
    plan = ExperimentPlan()
    return create_experiment(dataset, candidates, [revision], by=owner, plan=plan)


def test_all_datasets_of_the_agent_come_along_if_asked(agent):
    publish_with_gate(agent)
    evaluate_elsewhere(agent, "Complaints", expected_answer="Sorry.")
    eve = make_user("eve", is_superuser=True)
    evaluate_elsewhere(agent, "Private", owner=eve)
    gate_only = parse_json_or_yaml(export_agentfile(["refunds"]))
    text = export_agentfile(["refunds"], datasets=True)
    file = parse_json_or_yaml(text)
    assert len(gate_only["datasets"]) == 1
    names = {one.get("name", one["slug"]) for one in file["datasets"]}
    assert names == {"Complaints", gate_only["datasets"][0].get("name")}
    assert {one["slug"] for one in file["evaluators"]} == {
        "complaints-check",
        "contains",
    }

    done = import_agentfile(text, empty_site())

    assert done.published == ["agent refunds"]
    dataset = Dataset.objects.get(slug="complaints")
    assert dataset.examples.get().expected_answer == "Sorry."
    assert Evaluator.objects.filter(slug="complaints-check").exists()
    assert Dataset.objects.count() == 2
    assert import_agentfile(text, dataset.owner) == ImportResult([], [], [])


def test_a_file_that_no_import_would_take_is_not_exported(agent, client):
    publish_with_gate(agent)
    evaluate_elsewhere(agent, "Books", count=6, expected_answer="word " * 18_000)
    version = agent.versions.get()

    with pytest.raises(ExportTooLarge, match="Export dataset Books, the largest one"):
        export_agentfile(["refunds"], datasets=True)
    with pytest.raises(CommandError, match="Books"):
        call_command("export_agentfile", "refunds", datasets=True)
    client.force_login(agent.owner)
    url = f"/agents/{agent.pk}/export/?version={version.number}"
    refused = client.get(f"{url}&datasets=1", follow=True)
    assert "Export dataset Books" in refused.text
    assert "datasets=1" in refused.text
    assert client.get(url)["Content-Type"] == "application/yaml"
    token = create_token(agent.owner, scopes=["read"])
    headers = {"Authorization": f"Bearer {token}"}
    path = f"/api/v1/agents/{agent.pk}/export"
    said = client.get(f"{path}?datasets=true", headers=headers)
    assert (said.status_code, said.json()["errors"][0]["field"]) == (422, "datasets")
    assert client.get(path, headers=headers).status_code == 200


def test_a_large_dataset_of_a_gate_is_left_out_with_a_comment(agent):
    dataset = agent.gate.dataset
    large = ExampleContent(inputs={"input": "q"}, expected_answer="word " * 18_000)
    add_examples(dataset, [large] * 6, by=agent.owner)
    save_dataset_version(dataset, seen=dataset.version, by=agent.owner)

    text = export_agentfile(["refunds"], draft=True)

    comment = [line for line in text.splitlines() if line.startswith("# ")]
    assert comment[0].startswith("# WARNING: datasets of gates were left out")
    assert comment[-1] == f'# "{dataset.slug}"'
    file = parse_json_or_yaml(text)
    assert "datasets" not in file
    assert file["agents"][0]["gate"]["dataset"] == dataset.slug
    assert import_agentfile(text, agent.owner) == ImportResult([], [], [])
    with pytest.raises(AgentFileRefused, match=f"no dataset '{dataset.slug}'"):
        import_agentfile(text, empty_site())


def test_the_provider_of_a_judge_comes_along(agent):
    critic = make_provider(agent.owner, slug="critic")
    add_judge_to_gate(agent, critic)
    text = export_agentfile(["refunds"], draft=True)
    empty_site()
    critic.delete()

    done = import_agentfile(text, agent.owner)

    assert "provider critic" in done.created
    assert done.missing == ()


def test_an_import_says_which_provider_a_judge_lacks(agent):
    eve = make_user("eve", is_superuser=True)
    add_judge_to_gate(agent, make_provider(eve, slug="critic"))
    text = export_agentfile(["refunds"], draft=True)

    done = import_agentfile(text, empty_site())

    assert "critic" not in [
        one["slug"] for one in parse_json_or_yaml(text)["providers"]
    ]
    assert done.missing == ("helpful needs the provider 'critic'",)


def test_one_wrong_dataset_of_a_file_stores_nothing(agent):
    evaluate_elsewhere(agent, "Complaints")

    def edit(file):
        file["datasets"][1]["examples"][0]["expected_calls"] = [{"tool": ""}]

    text = change(export_agentfile(datasets=True), edit)
    owner = empty_site()

    with pytest.raises(AgentFileRefused, match=r"datasets\[1\]"):
        import_agentfile(text, owner)
    assert not Dataset.objects.exists()
    assert not Agent.objects.exists()
