"""Modules of the operator: the example of the documentation, and what is refused."""

import importlib
import re
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import Group

from runs import extensions
from runs.engine.kinds.registry import (
    AGENT_KINDS,
    OUTPUT_PARSERS,
    PARSING_ERROR_HANDLERS,
)
from runs.evaluation.effects import FindSecrets, SecretsFound
from runs.evaluation.registry import EVALUATOR_KINDS, score_record
from runs.evaluation.types import EvaluationExample, EvaluationRecord
from runs.extensions import (
    EvaluationInput,
    EvaluatorConfig,
    EvaluatorKind,
    ExtensionBroken,
    ScoreResult,
    load_extensions,
)
from runs.llm.registry import PROVIDER_KINDS
from runs.models import Agent, Evaluator, EvaluatorRevision, Provider, Run, Score
from runs.services.agentfile.load import import_agentfile
from runs.services.evaluation import extension_calls
from runs.services.experiments.advance import advance_experiment
from runs.services.experiments.claim import claim_experiments, release_experiments
from runs.services.experiments.create import (
    CandidateChoice,
    ExperimentPlan,
    create_experiment,
)
from runs.services.runs.start import start_run
from runs.worker import experiment_process
from runs.worker.execute_run import execute_run
from tests.engine.make import drive, make_spec
from tests.every_address import ERROR_PAGES, ask, list_addresses, render_nothing
from tests.make import make_agent, make_user
from tests.makers.experiments import (
    HOLDER,
    end_runs,
    make_examples,
    make_revision,
    turn,
)
from tests.makers.world import make_world
from tests.support.timing import wait_until
from tests.worker import functions
from tests.worker.experiments.test_experiment_process import advancing, has_ended
from tools.sandbox import abandoned_calls
from tools.sandbox.abandoned_calls import count_abandoned_calls

pytestmark = pytest.mark.django_db(transaction=True)

PAGE = Path(__file__).parents[1] / "docs" / "extensions.md"
REGISTRIES = (
    AGENT_KINDS,
    PROVIDER_KINDS,
    OUTPUT_PARSERS,
    PARSING_ERROR_HANDLERS,
    EVALUATOR_KINDS,
)
FILE = f"""
agentfile: 1
providers: [{{slug: bird, kind: parrot}}]
tools: [{{slug: echo, kind: function, name: echo,
  config: {{function: "{functions.__name__}:echo_back"}}}}]
agents:
  - {{slug: caller, kind: call-lines, provider: bird, model: parrot, tools: [echo]}}
  - {{slug: liner, kind: react, provider: bird, model: parrot,
     executor: {{output_parser: last-line}}}}
"""


@pytest.fixture
def example(tmp_path, monkeypatch):
    """Load the example of the documentation; forget it afterwards."""
    code = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[1]
    (tmp_path / "my_extensions.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    before = [dict(registry) for registry in REGISTRIES]
    load_extensions(["my_extensions"])
    yield
    sys.modules.pop("my_extensions")
    for registry, old in zip(REGISTRIES, before, strict=True):
        registry.clear()
        registry.update(old)


def executed(slug: str, question: str) -> Run:
    agent = Agent.objects.get(slug=slug)
    run = start_run(agent, by=agent.owner, inputs={"input": question})
    execute_run(run.pk)
    run.refresh_from_db()
    return run


def test_a_worker_runs_an_agent_of_an_outside_kind_and_provider(example, client):
    ann = make_user(is_superuser=True, is_staff=True)
    import_agentfile(FILE, ann)

    run = executed("caller", "polly")

    step = run.steps.get()
    assert (step.tool, step.observation) == ("echo", "polly")
    assert (run.status, run.output) == ("succeeded", "polly")
    client.force_login(ann)
    page = client.get(f"/runs/{run.pk}/?step=1&tab=request")
    assert page.context["raw"]["text"] == "{}"
    assert "Call lines" in client.get(f"/agents/{run.agent_id}/edit/").text
    assert "Parrot" in client.get("/providers/").text


def test_an_outside_evaluator_scores_a_run(example):
    record = EvaluationRecord(answer="three short words")
    scores = [
        score_record("length", {"most": most}, EvaluationExample(), record)
        for most in (3, 2)
    ]

    assert [score.passed for score in scores] == [True, False]
    assert "Extra inputs" in (
        score_record("length", {"least": 1}, EvaluationExample(), record).problem
    )


@pytest.mark.parametrize(
    ("tags", "answer", "applies", "problem"),
    [
        (("long",), "word", False, "The answer may be long."),
        ((), None, True, "The run has no answer."),
    ],
)
def test_an_outside_evaluator_says_why_a_run_has_no_score(
    example, tags, answer, applies, problem
):
    given, record = EvaluationExample(tags=tags), EvaluationRecord(answer=answer)

    score = score_record("length", {}, given, record)

    assert (score.applies, score.problem, score.value) == (applies, problem, None)


class NoSettings(EvaluatorConfig):
    """Nothing to set."""


def exit_process(config: NoSettings, given: EvaluationInput) -> ScoreResult:
    sys.exit(3)


def exit_after_asking(config: NoSettings, given: EvaluationInput):
    yield FindSecrets(())
    sys.exit(3)


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Return what evaluators that hang wait for."""
    event = threading.Event()
    yield event
    event.set()
    wait_until(lambda: count_abandoned_calls() == 0)


@pytest.fixture
def register(monkeypatch) -> Callable[..., None]:
    def register_kind(evaluate: Callable[..., object], name: str = "odd") -> None:
        kind = EvaluatorKind(name, NoSettings, evaluate)
        monkeypatch.setitem(EVALUATOR_KINDS, name, kind)

    return register_kind


def score_odd_record() -> ScoreResult:
    def find_nothing(effect: object) -> SecretsFound:
        return SecretsFound(0)

    example, record = EvaluationExample(), EvaluationRecord(answer="yes")
    call = extension_calls.ExtensionCalls().call
    return score_record("odd", {}, example, record, perform=find_nothing, call=call)


@pytest.mark.parametrize("evaluate", [exit_process, exit_after_asking])
def test_an_outside_evaluator_that_exits_gives_no_score(register, evaluate):
    register(evaluate)

    assert score_odd_record().problem == "The evaluator failed: SystemExit: 3"


def test_an_outside_evaluator_that_never_returns_is_left_behind(
    register, release, monkeypatch
):
    monkeypatch.setattr(extension_calls, "EXTENSION_SECONDS", 0.1)

    def hang(config: NoSettings, given: EvaluationInput) -> None:
        release.wait(60)

    def hang_after_asking(config: NoSettings, given: EvaluationInput):
        yield FindSecrets(())
        release.wait(60)

    for count, evaluate in enumerate((hang, hang_after_asking), 1):
        register(evaluate)
        assert score_odd_record().problem == "The evaluator did not end in 0.1 s."
        assert count_abandoned_calls() == count


def test_an_outside_evaluator_that_hangs_holds_up_no_other_experiment(
    register, release
):
    register(lambda config, given: release.wait(60), "hangs")
    register(exit_process, "exits")
    ann = make_user("ann")
    hanging, exiting, other = (
        create_experiment(
            make_examples(ann, 2),
            [CandidateChoice(make_agent(ann))],
            [make_revision(ann, name=kind, kind=kind)],
            by=ann,
            plan=ExperimentPlan(),
        )
        for kind in ("hangs", "exits", "contains")
    )
    for claimed in claim_experiments(HOLDER):
        advance_experiment(claimed)
        end_runs(claimed)
    release_experiments(HOLDER)

    with advancing(threading.Event()):
        for one in (exiting, other):
            wait_until(lambda one=one: has_ended(one))
        assert not has_ended(hanging)
        release.set()
        wait_until(lambda: has_ended(hanging))

    problems = Score.objects.filter(cell__experiment=exiting)
    assert {one.problem for one in problems} == {"The evaluator failed: SystemExit: 3"}


def test_the_process_of_experiments_ends_if_too_many_evaluators_hang(
    register, release, monkeypatch
):
    monkeypatch.setattr(extension_calls, "EXTENSION_SECONDS", 0.1)
    monkeypatch.setattr(abandoned_calls, "MAX_ABANDONED_CALLS", 1)
    monkeypatch.setattr(experiment_process, "LAST_IDLE_SECONDS", 1_000)
    register(lambda config, given: release.wait(60), "hangs")
    ann = make_user("ann")
    experiment = create_experiment(
        make_examples(ann, 1),
        [CandidateChoice(make_agent(ann))],
        [make_revision(ann, name="hangs", kind="hangs")],
        by=ann,
        plan=ExperimentPlan(),
    )
    turn(experiment)
    end_runs(experiment)
    release_experiments(HOLDER)

    with advancing(threading.Event()) as thread:
        wait_until(lambda: not thread.is_alive())

    score = Score.objects.get(cell__experiment=experiment)
    assert score.problem == "The evaluator did not end in 0.1 s."


def test_a_provider_without_a_server_needs_no_base_url(example, client):
    client.force_login(make_user())
    fields = {"name": "Polly", "kind": "parrot", "base_url": "", "timeout": "60"}
    fields |= {"visibility": "private", "outage_minutes": "0", "default_model": "x"}

    answer = client.post("/providers/new/", fields)

    assert answer.status_code == 302, answer.context["form"].errors
    assert Provider.objects.get(kind="parrot").base_url == ""


def test_a_worker_uses_an_outside_output_parser(example):
    import_agentfile(FILE, make_user())

    assert executed("liner", "polly").output == "CALL (there are no tools): polly"


def test_the_form_of_an_agent_offers_parsers_and_handlers(example, client):
    ann = make_user(is_superuser=True, is_staff=True)
    import_agentfile(FILE, ann)
    agent = Agent.objects.get(slug="caller")
    client.force_login(ann)
    fields = {"name": "c", "kind": "react", "provider": agent.provider_id}
    fields |= {"model": "parrot", "source": "write", "visibility": "private"}
    fields |= {"early_stopping_method": "force", "parsing": "tell"}
    fields |= {"output_parser": "last-line", "parsing_error_handler": "polite"}
    url = f"/agents/{agent.pk}/edit/"

    assert 'name="output_parser"' in client.get(url).text
    answer = client.post(url, fields)

    assert answer.status_code == 302, answer.context["form"].errors
    stored = Agent.objects.get(pk=agent.pk).executor
    assert stored["output_parser"] == "last-line"
    assert stored["parsing_error_handler"] == "polite"
    assert '<option value="polite" selected>' in client.get(url).text
    del OUTPUT_PARSERS["last-line"], PARSING_ERROR_HANDLERS["polite"]
    page = client.get(url).text
    assert "last-line (not registered)" in page
    refused = client.post(url, fields).context["form"]
    assert set(refused.errors) == {"output_parser", "parsing_error_handler"}
    client.post(url, fields | {"output_parser": "", "parsing_error_handler": ""})
    assert "output_parser" not in Agent.objects.get(pk=agent.pk).executor
    assert 'name="output_parser"' not in client.get(url).text


def test_the_form_without_extensions_keeps_what_is_stored(client):
    ann = make_user()
    client.force_login(ann)
    agent = make_agent(
        ann, kind="react", executor={"output_schema": {"type": "object"}}
    )

    assert 'name="output_parser"' not in client.get(f"/agents/{agent.pk}/edit/").text


def test_the_pages_of_a_run_outlive_its_extension(example, client):
    ann = make_user(is_superuser=True, is_staff=True)
    import_agentfile(FILE, ann)
    run = executed("caller", "polly")
    del AGENT_KINDS["call-lines"], PROVIDER_KINDS["parrot"]

    client.force_login(ann)
    for query in ("", "?step=1", "?step=1&tab=prompt", "?step=1&tab=request"):
        assert client.get(f"/runs/{run.pk}/{query}").status_code == 200
    assert client.get(f"/runs/{run.pk}/fork/?step=1").status_code == 200
    provider = run.agent.provider_id
    for path in (f"/agents/{run.agent_id}/", f"/agents/{run.agent_id}/edit/"):
        assert client.get(path).status_code == 200
    for path in ("/providers/", f"/providers/{provider}/", "/"):
        assert client.get(path).status_code == 200
    failed = executed("caller", "polly")
    assert (failed.status, failed.error_code) == ("failed", "spec")


def test_a_parsing_error_handler_writes_what_the_model_is_given(example):
    spec = make_spec("react", parsing_error_handler="polite")

    driven = drive(spec, ["hm", "Final Answer: end"])

    assert driven.steps[0][2].startswith("Please try again. The reply has neither")


def test_a_name_that_nobody_registered_is_refused():
    driven = drive(make_spec("react", output_parser="magic"), [])

    assert driven.result.status == "failed"
    assert "'magic' is not registered" in driven.result.error.message


@pytest.mark.parametrize(
    ("name", "says"),
    [("react", "There already is"), ("A B", "cannot name"), ("", "cannot name")],
)
def test_a_name_that_is_taken_or_invalid_is_refused(name, says):
    kind = AGENT_KINDS["xml"]
    with pytest.raises(ValueError, match=says):
        extensions.register_agent_kind(
            extensions.AgentKind(**{**vars(kind), "name": name})
        )


def test_a_module_that_cannot_be_imported_is_named(tmp_path, monkeypatch):
    (tmp_path / "broken_extension.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()

    with pytest.raises(ExtensionBroken, match="'broken_extension'.*ZeroDivisionError"):
        load_extensions(["broken_extension"])


def test_an_outside_evaluator_has_a_form_and_scores_an_experiment(example, client):
    ann = make_user("ann")
    client.force_login(ann)
    page = client.get("/evaluators/new/?kind=length").content.decode()
    assert 'name="config-most"' in page

    form = {"name": "Brief", "config-most": "many", "visibility": "private"}
    refused = client.post("/evaluators/new/?kind=length", form).content.decode()
    assert "Brief" in refused
    assert not Evaluator.objects.exists()
    client.post("/evaluators/new/?kind=length", {**form, "config-most": "1"})
    evaluator = Evaluator.objects.get()
    assert evaluator.config == {"most": 1}
    assert "length" in client.get("/evaluators/").content.decode()

    experiment = create_experiment(
        make_examples(ann, 1),
        [CandidateChoice(make_agent(ann))],
        [evaluator.revisions.get()],
        by=ann,
        plan=ExperimentPlan(),
    )
    turn(experiment)
    end_runs(experiment, "two words")
    turn(experiment)
    score = Score.objects.get()
    assert (score.passed, score.explanation) == (False, "2 words.")
    assert (
        "2 words."
        in client.get(
            f"/experiments/{experiment.pk}/?cell={score.cell_id}"
        ).content.decode()
    )


def test_an_evaluator_outlives_its_extension_and_can_only_be_archived(example, client):
    ann = make_user("ann")
    client.force_login(ann)
    evaluator = make_revision(ann, name="Brief", kind="length").evaluator
    del EVALUATOR_KINDS["length"]
    url = f"/evaluators/{evaluator.pk}/"

    page = client.get(url).text
    answer = client.post(url, {"name": "New", "visibility": "private"})

    assert "The kind “length” is not registered" in page
    assert answer.status_code == 200
    said = "The kind 'length' is unknown."
    assert answer.context["form"].non_field_errors() == [said]
    assert client.post(f"{url}archive/").status_code == 302
    evaluator.refresh_from_db()
    assert (evaluator.name, evaluator.archived_at is None) == ("Brief", False)


@pytest.mark.slow
def test_no_page_needs_the_kind_of_a_stored_evaluator(client, monkeypatch):
    render_nothing(monkeypatch, *ERROR_PAGES)
    owner = make_user("root", is_superuser=True)
    make_world(owner, Group.objects.create(name="crew"))
    client.force_login(owner)
    client.raise_request_exception = False
    for rows in (Evaluator.objects, EvaluatorRevision.objects):
        rows.update(kind="gone")

    failed = [
        (method, one.name)
        for one in list_addresses()
        for method in ("GET", "POST")
        if ask(client, method, one.path).status_code >= 500
    ]

    assert failed == []


def test_a_run_is_not_scored_by_a_kind_that_is_not_registered(example):
    ann = make_user("ann")
    revision = make_revision(ann, kind="length")
    experiment = create_experiment(
        make_examples(ann, 1),
        [CandidateChoice(make_agent(ann))],
        [revision],
        by=ann,
        plan=ExperimentPlan(),
    )
    del EVALUATOR_KINDS["length"]
    turn(experiment)
    end_runs(experiment)

    assert turn(experiment).status == "done"
    assert "The kind 'length' is unknown." in Score.objects.get().problem
