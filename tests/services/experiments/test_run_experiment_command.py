"""The command `run_experiment`: repeats, waits, judges, and reports for CI servers."""

import json
import time
from io import StringIO
from xml.etree import ElementTree

import pytest
from django.core.management import CommandError, call_command

from runs.models import Experiment, ExperimentRun, Run, Score, Worker
from runs.services.evaluators.save import save_evaluator
from runs.services.experiments.create import (
    CandidateChoice,
    ExperimentPlan,
    create_experiment,
)
from runs.services.experiments.repeat import find_experiment
from runs.services.gates.edit import GatePlan, save_gate
from tests.make import make_agent, make_user, make_version, make_worker
from tests.makers.experiments import end_runs, make_examples, make_revision, turn

pytestmark = pytest.mark.django_db


@pytest.fixture
def former(monkeypatch) -> Experiment:
    """An experiment that has ended; a worker advances whatever the command starts."""
    ann = make_user("ann")
    agent = make_agent(ann)
    make_version(agent)
    experiment = create_experiment(
        make_examples(ann, 4),
        [CandidateChoice(agent)],
        [make_revision(ann)],
        by=ann,
        plan=ExperimentPlan(),
        name="Refunds",
    )
    finish(experiment)
    make_worker()

    def work(seconds: float) -> None:
        finish(Experiment.objects.latest("pk"))

    monkeypatch.setattr(time, "sleep", work)
    return experiment


def finish(experiment: Experiment, *, wrong: int = 0) -> None:
    """Do what workers do; `wrong` runs answer something else."""
    turn(experiment)
    end_runs(experiment)
    rows = Run.objects.filter(experiment_run__experiment=experiment)
    picked = rows.order_by("-pk").values_list("pk", flat=True)[:wrong]
    Run.objects.filter(pk__in=list(picked)).update(output="no \x0c<b>")
    turn(experiment)


def answer_wrongly(monkeypatch, count: int) -> None:
    monkeypatch.setattr(
        time,
        "sleep",
        lambda seconds: finish(Experiment.objects.latest("pk"), wrong=count),
    )


def run(*options: str) -> tuple[str, str, int]:
    """Return what the command prints, its errors, and its exit code."""
    out, err = StringIO(), StringIO()
    try:
        call_command("run_experiment", *options, stdout=out, stderr=err)
    except CommandError as error:
        return out.getvalue(), f"{err.getvalue()}{error}", error.returncode
    return out.getvalue(), err.getvalue(), 0


def test_it_repeats_the_experiment_and_waits_for_the_result(former):
    said, progress, code = run("Refunds", "--fail-under", "0.9")

    again = Experiment.objects.latest("pk")
    assert (again.name, again.status, code) == ("Refunds", "done", 0)
    assert again.pk != former.pk
    assert said == "Draft: 4 of 4 passed (100.0%), $0.0000\n"
    assert progress.splitlines()[1:] == ["0 of 4 runs", "4 of 4 runs"]


def test_the_draft_is_compared_with_the_newest_version(former):
    said, _, code = run(f"{former.pk}", "--candidate", "draft", "--json")

    report = json.loads(said)
    assert [one["label"] for one in report["candidates"]] == ["Version 1", "Draft"]
    assert [one["version"] for one in report["candidates"]] == [1, None]
    assert report["candidates"][1]["figures"]["passed"] == 4
    assert report["comparisons"][0]["kind"] == "no_difference"
    assert (report["passed"], report["fail_under"], code) == (True, None, 0)


def test_a_version_is_a_candidate_too(former):
    run("Refunds", "--candidate", "1")

    [candidate] = Experiment.objects.latest("pk").candidates.all()
    assert candidate.label == "Version 1"


def test_too_few_passes_are_exit_code_1(former, monkeypatch):
    answer_wrongly(monkeypatch, 1)

    _, errors, code = run("Refunds", "--fail-under", "0.76")
    assert code == 1
    assert "Draft is below --fail-under: 75.0% instead of at least 76.0%." in errors
    assert run("Refunds", "--fail-under", "0.75")[2] == 0


def test_the_gate_of_the_agent_decides_too(former, monkeypatch):
    agent = former.candidates.get().agent
    revision = former.evaluators.get()
    plan = GatePlan(former.dataset, [revision.evaluator])
    save_gate(agent, plan, by=agent.owner)

    said, _, code = run("Refunds", "--candidate", "draft")
    assert code == 0
    assert "Gate, pass rate (1, required 0.9): met" in said
    assert "Gate, regression (0 better, 0 worse): met" in said

    answer_wrongly(monkeypatch, 1)
    said, errors, code = run("Refunds", "--candidate", "draft", "--json")
    assert code == 1
    assert "Draft does not pass the gate of its agent: pass rate" in errors
    report = json.loads(said)
    assert report["passed"] is False
    assert {one["kind"]: one["is_met"] for one in report["gate"]} == {
        "scored": True,
        "pass_rate": False,
        "regression": True,
    }


def test_a_gate_with_other_evaluators_says_nothing(former):
    agent = former.candidates.get().agent
    other = make_revision(agent.owner, name="Other").evaluator
    plan = GatePlan(former.dataset, [other])
    save_gate(agent, plan, by=agent.owner)

    said, errors, code = run("Refunds", "--candidate", "draft", "--json")

    assert (json.loads(said)["gate"], code) == (None, 0)
    assert "The gate of the agent is not judged" in errors
    assert "gate" not in run("Refunds", "--candidate", "1")[1]


def test_runs_that_are_not_scored_do_not_pass(former, monkeypatch):
    def fail(seconds: float) -> None:
        experiment = Experiment.objects.latest("pk")
        turn(experiment)
        first = Run.objects.filter(experiment_run__experiment=experiment)[:1].get()
        end_runs(experiment)
        Run.objects.filter(pk=first.pk).update(status="failed", error_code="timeout")
        turn(experiment)

    monkeypatch.setattr(time, "sleep", fail)

    said, _, code = run("Refunds", "--fail-under", "0.9")

    why = "Model server did not respond in time: 1"
    assert said == f"Draft: 3 of 4 passed (75.0%), 1 failed ({why}), $0.0000\n"
    assert code == 1


def test_the_junit_file_names_each_run_and_why_it_failed(former, monkeypatch, tmp_path):
    answer_wrongly(monkeypatch, 1)
    path = tmp_path / "report.xml"

    run("Refunds", "--junit", str(path))

    [suite] = ElementTree.parse(path).getroot()
    counts = [suite.get(name) for name in ("tests", "failures", "errors", "skipped")]
    assert counts == ["4", "1", "0", "0"]
    [failure] = suite.iter("failure")
    assert failure.get("message", "").startswith("Contains: ")
    assert [case.get("name") for case in suite][0] == "1: question 0"
    assert ExperimentRun.objects.count() == Score.objects.count() == 8


def test_a_run_that_was_not_scored_is_an_error_in_the_junit_file(former, tmp_path):
    evaluator = former.evaluators.get().evaluator
    evaluator.kind = "gone"  # as of an extension that is not loaded
    save_evaluator(evaluator, by=former.owner)
    path = tmp_path / "report.xml"

    run("Refunds", "--junit", str(path))

    [suite] = ElementTree.parse(path).getroot()
    assert (suite.get("errors"), suite.get("skipped")) == ("4", "0")
    assert all(part.get("message") for part in suite.iter("error"))


def test_the_result_is_printed_if_the_junit_file_cannot_be_written(former, tmp_path):
    folder = tmp_path / "reports"
    folder.mkdir()
    path = folder / "report.xml"
    path.symlink_to(tmp_path / "gone" / "report.xml")

    said, errors, code = run("Refunds", "--junit", str(path))

    assert "Draft: 4 of 4 passed" in said
    assert f"{path} cannot be written: No such file or directory." in errors
    assert code == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["Nothing"], 'Experiment "Nothing" not found'),
        (["99999"], "not found"),
        (["Refunds", "--candidate", "7"], "has no version 7"),
        (["Refunds", "--candidate", "new"], "--candidate must be draft or the number"),
        (["Refunds", "--timeout", "-1"], "--timeout must be 0 or more seconds"),
        (["Refunds", "--timeout", "nan"], "--timeout must be 0 or more seconds"),
        (["Refunds", "--fail-under", "90"], "--fail-under must be from 0 to 1"),
        (["Refunds", "--junit", "/nowhere/x.xml"], "/nowhere does not exist"),
    ],
)
def test_a_wrong_argument_is_exit_code_2_and_starts_nothing(former, options, words):
    _, errors, code = run(*options)

    assert code == 2
    assert words in errors
    assert Experiment.objects.count() == 1


def test_an_experiment_that_is_stopped_is_no_result(former, monkeypatch):
    monkeypatch.setattr(
        time,
        "sleep",
        lambda seconds: Experiment.objects.filter(status="running").update(
            status="stopped", problem="budget", budget="0.5"
        ),
    )

    _, errors, code = run("Refunds", "--fail-under", "0")

    assert code == 2
    assert "stopped at its budget of $0.5" in errors


def test_a_timeout_stops_the_experiment(former):
    _, errors, code = run("Refunds", "--timeout", "0")

    assert code == 2
    assert "stopped after 0 seconds (--timeout). Resume it on its page." in errors
    assert Experiment.objects.latest("pk").status == "stopped"


def test_ctrl_c_stops_the_experiment(former, monkeypatch):
    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", interrupt)

    with pytest.raises(SystemExit) as ended:
        run("Refunds")
    assert ended.value.code == 130
    assert Experiment.objects.latest("pk").status == "stopped"


def test_a_missing_worker_is_named(former, monkeypatch):
    Worker.objects.all().delete()

    assert "No worker is running. Start one" in run("Refunds")[1]


def test_a_number_is_an_experiment_before_it_is_a_name(former):
    Experiment.objects.create(
        owner=make_user("eve"),
        name=str(former.pk),
        dataset=former.dataset,
        seed=1,
        dataset_version=1,
    )

    assert find_experiment(str(former.pk)) == former


def test_a_name_of_several_owners_needs_the_owner(former):
    other = Experiment.objects.create(
        owner=make_user("eve"),
        name="Refunds",
        dataset=former.dataset,
        seed=1,
        dataset_version=1,
    )

    _, errors, code = run("Refunds")

    assert code == 2
    assert 'Several users have an experiment "Refunds": ann, eve. Add --owner' in errors
    assert find_experiment("Refunds", owner="ann") == former
    assert find_experiment("Refunds", owner="eve") == other
    assert (
        'nobody has no experiment "Refunds"' in run("Refunds", "--owner", "nobody")[1]
    )
