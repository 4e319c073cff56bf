"""Experiments: list, form, page, and who sees them."""

import html
import re
from html import unescape

import pytest
from django.utils import timezone

from runs.forms.experiments.experiment import MAX_OFFERED_VERSIONS
from runs.models import (
    Agent,
    Dataset,
    Evaluator,
    Example,
    Experiment,
    ExperimentRun,
    Run,
    Score,
)
from runs.services.datasets.content import ExampleContent
from runs.services.datasets.edit import add_examples, edit_example
from runs.services.datasets.save_version import save_dataset_version
from runs.services.experiments.changes import CandidateChanges, use_library_prompt
from runs.services.experiments.control import note_deleted_evaluators
from runs.services.experiments.create import (
    CandidateChoice,
    ExperimentPlan,
    create_experiment,
)
from runs.services.runs.start import freeze_newest_version
from runs.store.specs import load_spec
from tests.make import (
    make_agent,
    make_dataset,
    make_prompt,
    make_provider,
    make_run,
    make_step,
    make_tool,
    make_user,
    make_version,
)
from tests.makers.annotation import make_queue, score_next
from tests.makers.experiments import (
    end_run,
    end_runs,
    make_examples,
    make_experiment,
    make_revision,
    turn,
)
from tests.support.html import strip_tags
from tools.models import Tool

pytestmark = pytest.mark.django_db

POLLS = 'hx-trigger="every 2s"'


def start(client, ann, count: int = 3, **form) -> Experiment:
    """Create an experiment of a version and the draft through the form."""
    agent = make_agent(ann)
    make_version(agent)
    dataset = make_examples(ann, count)
    revision = make_revision(ann)
    fields = {
        "candidates": ["1", "draft"],
        "evaluators": [revision.evaluator_id],
        "tool_mode": "hold_back",
        "repetitions": 1,
        "concurrency": 50,
    }
    url = f"/experiments/new/?dataset={dataset.pk}&agent={agent.pk}"
    client.post(url, {**fields, **form})
    return Experiment.objects.get()


def row(place: int = 0, **fields) -> dict[str, object]:
    """Return the fields of a candidate with changes."""
    named = {f"changed-{place}-{name}": value for name, value in fields.items()}
    return {"rows": place + 1, **named}


def page_of(client, experiment: Experiment, query: str = "") -> str:
    return client.get(f"/experiments/{experiment.pk}/{query}").content.decode()


def test_the_form_offers_versions_and_the_draft(client, ann):
    experiment = start(client, ann, **row(model="model-b"))

    labels = [one.label for one in experiment.candidates.all()]
    assert labels == ["Version 1", "Draft", "Draft, model-b"]
    assert experiment.total == 9


def test_the_forms_say_what_cannot_be_held_back(client, ann):
    experiment = start(client, ann)
    agent = experiment.candidates.first().agent
    query = f"?dataset={experiment.dataset_id}&agent={agent.pk}"

    for url in (f"/experiments/new/{query}", f"/agents/{agent.pk}/gate/"):
        page = client.get(url).content.decode()
        assert "declared read-only and writes nevertheless" in page


def test_nothing_runs_in_the_web_process(client, ann):
    experiment = start(client, ann)

    page_of(client, experiment)

    assert not Run.objects.exists()
    assert "A worker creates the runs in a moment" in page_of(client, experiment)


def test_running_again_begins_with_what_the_experiment_had(client, ann):
    experiment = start(
        client, ann, name="Refunds", repetitions=3, **row(model="model-b")
    )
    link = re.search(r'href="(/experiments/new/[^"]+)"', page_of(client, experiment))

    form = client.get(html.unescape(link[1])).context["form"]

    assert form["name"].value() == "Refunds"
    assert form["candidates"].value() == ["1", "draft"]
    assert form.rows[0]["model"].value() == "model-b"
    assert form["evaluators"].value() == [experiment.evaluators.get().evaluator_id]
    assert form["repetitions"].value() == 3
    assert form["concurrency"].value() == 50


def test_an_experiment_of_somebody_else_is_no_beginning_of_a_form(client, ann):
    experiment = start(client, ann, name="Refunds")
    Experiment.objects.update(owner=make_user("bob"))
    agent = experiment.candidates.first().agent_id
    query = f"dataset={experiment.dataset_id}&agent={agent}&again={experiment.pk}"

    form = client.get(f"/experiments/new/?{query}").context["form"]

    assert form["name"].value() is None


def test_without_an_evaluator_nothing_is_started(client, ann):
    agent, dataset = make_agent(ann), make_examples(ann, 1)
    make_revision(ann)
    url = f"/experiments/new/?dataset={dataset.pk}&agent={agent.pk}"

    page = client.post(url, {"candidates": ["draft"], "tool_mode": "hold_back"})

    assert "Select at least one evaluator" in page.content.decode()
    assert not Experiment.objects.exists()


def test_a_judge_or_replay_that_cannot_work_is_refused_at_its_field(client, ann):
    agent, dataset = make_agent(ann), make_examples(ann, 1)
    provider = make_provider(ann)
    config = {"provider": provider.slug, "model": "m", "rubric": "Polite?"}
    judge = make_revision(ann, name="Tone", kind="judge", config=config)
    form = {
        "candidates": ["draft"],
        "evaluators": [judge.evaluator_id],
        "tool_mode": "replay_strict",
        "repetitions": 1,
        "concurrency": 1,
    }
    url = f"/experiments/new/?dataset={dataset.pk}&agent={agent.pk}"

    errors = client.post(url, form).context["form"].errors
    assert list(errors) == ["tool_mode"]
    provider.delete()
    errors = client.post(url, form).context["form"].errors

    assert list(errors) == ["evaluators"]
    assert f"asks the provider '{provider.slug}'" in errors["evaluators"][0]
    assert not Experiment.objects.exists()


def test_examples_that_the_agent_cannot_run_are_named_on_the_form(client, ann):
    agent = make_agent(ann)
    dataset = make_examples(ann, 2)
    dataset.examples.update(inputs={"city": "Oslo"})
    form = {
        "candidates": ["draft"],
        "evaluators": [make_revision(ann).evaluator_id],
        "tool_mode": "hold_back",
        "repetitions": 1,
        "concurrency": 1,
    }
    url = f"/experiments/new/?dataset={dataset.pk}&agent={agent.pk}"

    page = client.post(url, form).content.decode()

    assert "Examples without a value for input: 1, 2." in page


def test_the_page_follows_the_runs_until_all_have_ended(client, ann):
    experiment = start(client, ann)
    turn(experiment)
    page = page_of(client, experiment)
    assert POLLS in page
    assert "running" in page

    end_runs(experiment)
    experiment = turn(experiment)

    page = page_of(client, experiment)
    assert POLLS not in page
    assert "6 of 6 runs" in strip_tags(page)
    assert "B does the same as A on all 3 examples." in page


def make_worse(client, ann) -> Experiment:
    """Return an experiment whose second candidate fails all of 8 examples."""
    experiment = start(client, ann, 8)
    turn(experiment)
    end_runs(experiment)
    second = experiment.candidates.get(position=1)
    Run.objects.filter(experiment_run__candidate=second).update(output="no")
    return turn(experiment)


def test_a_clear_difference_is_said_in_a_sentence_with_its_tag(client, ann):
    experiment = make_worse(client, ann)

    page = strip_tags(page_of(client, experiment))

    assert "B is clearly worse than A: 0 improved, 8 regressed." in page
    assert "Most examples" not in page  # all have the tag
    assert "clearly worse on" not in page
    assert re.search("−100 −100 to −[0-9]{2} 0 better, 8 worse", page)
    listed = client.get("/experiments/").content.decode()
    assert "B is clearly worse than A" in listed


def test_a_clear_difference_on_a_tag_is_said(client, ann):
    experiment = start(client, ann, 20)
    turn(experiment)
    Example.objects.filter(number__gt=10).update(tags=["refund", "t"])
    end_runs(experiment)
    worse = Run.objects.filter(
        experiment_run__candidate__position=1, experiment_run__example__number__gt=10
    )
    worse.update(output="no")
    experiment = turn(experiment)

    page = strip_tags(page_of(client, experiment))

    assert "B is clearly worse on refund: 0 improved, 10 regressed." in page
    assert "clearly worse on t:" not in page


def test_examples_are_filtered_by_what_got_worse(client, ann):
    experiment = make_worse(client, ann)
    better = experiment.cells.filter(candidate__position=1).first()
    experiment.cells.filter(pk=better.pk).update(passed=True, score=1)

    page = strip_tags(page_of(client, experiment, "?show=worse"))

    assert "1 to 7 of 7" in page


def test_examples_are_in_the_order_of_their_numbers_after_an_edit(client, ann):
    dataset = make_examples(ann, 3)
    content = ExampleContent(inputs={"input": "edited"}, expected_answer="yes")
    edit_example(dataset, 1, content, by=ann)
    save_dataset_version(dataset, seen=1, by=ann)
    agent = make_agent(ann)
    make_version(agent)
    form = {
        "candidates": ["1"],
        "evaluators": [make_revision(ann).evaluator_id],
        "tool_mode": "hold_back",
        "repetitions": 1,
        "concurrency": 50,
    }
    client.post(f"/experiments/new/?dataset={dataset.pk}&agent={agent.pk}", form)
    experiment = turn(Experiment.objects.get())

    page = page_of(client, experiment)

    assert re.findall(r'c-no">(\d+)</td>', page) == ["1", "2", "3"]


def test_the_first_example_that_got_worse_is_shown_beside_the_table(client, ann):
    experiment = make_worse(client, ann)
    better = experiment.cells.filter(candidate__position=1, example__number=1)
    better.update(passed=True, score=1)

    page = page_of(client, experiment)

    assert '<h2 class="h-sm">Example 2</h2>' in page
    assert 'data-view="1"' in page  # a phone shows the table first


def test_a_cell_shows_the_answer_against_the_expectation(client, ann):
    experiment = make_worse(client, ann)
    cell = experiment.cells.filter(candidate__position=1).first()

    page = page_of(client, experiment, f"?cell={cell.pk}")

    assert "<del>yes</del><ins>no</ins>" in page
    assert "Not found" in page
    assert (
        f"/runs/compare/?a={Run.objects.order_by('pk')[0].pk}" in page
        or "compare" in page
    )


@pytest.mark.parametrize(
    ("kind", "config", "fields", "said"),
    [
        ("contains", {}, {}, "未找到：'yes'。"),
        ("exact", {}, {}, "期望为 'yes'，实际为 'no'。"),
        ("regex", {"pattern": "yes"}, {}, "未找到模式 'yes'。"),
        ("tool-rules", {"must_call": ["find"]}, {}, "find 没有被成功调用。"),
        ("limits", {"tokens": 1}, {"input_tokens": 9}, "Token 数：9，上限为 1。"),
        ("json", {}, {}, "期望回答不是 JSON。"),
        ("similarity", {}, {"status": "canceled"}, "运行已取消。"),
    ],
)
def test_a_chinese_viewer_reads_why_a_run_was_scored_so_in_chinese(
    client, ann, kind, config, fields, said
):
    experiment = start(client, ann, 1)
    revision = make_revision(ann, name="Other", kind=kind, config=config)
    experiment.evaluators.set([revision])
    turn(experiment)
    end_runs(experiment, "no", **fields)
    cell = turn(experiment).cells.first()
    score = cell.scores.get()

    english = page_of(client, experiment, f"?cell={cell.pk}")
    client.post("/preferences/language/", {"language": "zh-hans"})
    chinese = page_of(client, experiment, f"?cell={cell.pk}")

    assert said in unescape(chinese)
    assert said not in unescape(english)
    assert (score.problem or score.explanation) in unescape(english)


def test_a_chinese_viewer_reads_why_no_run_could_be_started_in_chinese(client, ann):
    experiment = start(client, ann, 1)
    Experiment.objects.update(tool_mode="replay_strict")
    cell = turn(experiment).cells.first()
    client.post("/preferences/language/", {"language": "zh-hans"})

    page = page_of(client, experiment, f"?cell={cell.pk}")

    assert (
        "该示例没有来源运行，或来源运行已被删除，因此没有可供严格重放的录制。" in page
    )
    assert "no source run" in cell.problem


def test_a_score_stored_as_a_plain_text_is_shown_as_it_is(client, ann):
    experiment = make_worse(client, ann)
    cell = experiment.cells.filter(candidate__position=1).first()
    cell.scores.update(explanation="Not found: 'yes'.")
    client.post("/preferences/language/", {"language": "zh-hans"})

    page = page_of(client, experiment, f"?cell={cell.pk}")

    assert "Not found: 'yes'." in unescape(page)


def test_a_failed_run_says_why_in_place_of_numbers(client, ann):
    experiment = start(client, ann, 1)
    turn(experiment)
    end_runs(experiment, status="failed", error_message="The server is away.")
    experiment = turn(experiment)
    cell = experiment.cells.first()

    page = page_of(client, experiment, f"?cell={cell.pk}")

    assert 'data-mark="x"' in page
    assert "The server is away." in page
    assert "0.00" not in page


def test_examples_are_filtered_by_tools_that_differ(client, ann):
    experiment = start(client, ann)
    turn(experiment)
    second = experiment.candidates.get(position=1)
    for cell in experiment.cells.filter(example__number=1):
        make_step(cell.run, tool="find")
    make_step(experiment.cells.get(example__number=2, candidate=second).run)
    end_runs(experiment)
    experiment = turn(experiment)

    page = page_of(client, experiment, "?show=tools")

    assert re.findall(r'c-no">(\d+)</td>', page) == ["2"]
    assert "Tools differ 1" in strip_tags(page)


def test_the_tools_of_runs_that_have_not_ended_are_not_compared(client, ann):
    experiment = start(client, ann, 1)
    turn(experiment)
    make_step(experiment.cells.get(candidate__position=0).run)

    assert "Tools differ" not in page_of(client, experiment)


def make_recorded_agent(owner):
    """Return an agent with a tool, whose recorded run is the only example."""
    agent = make_agent(owner, tools=(make_tool(owner, name="find"),))
    recorded = make_run(
        owner, agent=agent, spec=freeze_newest_version(agent).row, status="succeeded"
    )
    make_step(recorded, tool="find")
    dataset = make_dataset(owner)
    one = ExampleContent(inputs={"input": "Go."}, expected_answer="yes")
    add_examples(dataset, [one], by=owner, runs=[recorded])
    save_dataset_version(dataset, seen=0, by=owner)
    return agent


def start_replay(agent, tool_mode="replay_by_tool"):
    return create_experiment(
        Dataset.objects.get(),
        [CandidateChoice(agent)],
        [make_revision(agent.owner)],
        by=agent.owner,
        plan=ExperimentPlan(tool_mode=tool_mode),
    )


@pytest.mark.parametrize(
    ("tool_mode", "is_changed", "is_noted"),
    [
        ("replay_by_tool", True, True),
        ("replay_strict", True, True),
        ("replay_by_tool", False, False),
        ("hold_back", True, False),
    ],
)
def test_tools_that_changed_since_the_recordings_are_named_from_the_start(
    client, ann, tool_mode, is_changed, is_noted
):
    agent = make_recorded_agent(ann)
    if is_changed:
        Tool.objects.update(args_schema={"type": "object", "properties": {}})

    page = page_of(client, start_replay(agent, tool_mode))

    assert ("Tools changed since the recording: find." in page) == is_noted


def test_a_replay_whose_tool_has_changed_says_so_beside_the_answer(client, ann):
    agent = make_recorded_agent(ann)
    Tool.objects.update(args_schema={"type": "object", "properties": {}})
    experiment = turn(start_replay(agent))
    cell = experiment.cells.get()
    make_step(cell.run, tool="find", answered_by="recording")
    end_runs(experiment)
    turn(experiment)

    said = "Tools changed since the recording: find."
    assert said in strip_tags(page_of(client, experiment, f"?cell={cell.pk}"))
    run_page = strip_tags(client.get(f"/runs/{cell.run_id}/").content.decode())
    assert "changed since the recording: find" in run_page
    make_version(agent)
    ExperimentRun.objects.update(passed=False)
    Score.objects.update(passed=False, value=0)
    bisect = client.get(f"/experiments/{experiment.pk}/bisect/?cell={cell.pk}")
    assert said in strip_tags(bisect.content.decode())
    assert "Not held back: a tool that is declared" in bisect.content.decode()


def test_an_experiment_that_lost_an_evaluator_says_so(client, ann):
    experiment = start(client, ann)
    note_deleted_evaluators(Evaluator.objects.all())
    turn(experiment)
    end_runs(experiment)
    Evaluator.objects.all().delete()
    cell = turn(experiment).cells.first()

    page = page_of(client, experiment, f"?cell={cell.pk}")

    assert "All its evaluators were deleted" in page
    assert "No scores. The evaluators were deleted." in page


def test_each_candidate_has_a_progress_while_it_runs(client, ann):
    experiment = start(client, ann, 3)
    turn(experiment)
    first = experiment.cells.filter(candidate__position=0).first()
    end_run(first, "yes")
    turn(experiment)

    page = strip_tags(page_of(client, experiment))

    assert "A Version 1 1 of 3" in page
    assert "B Draft 0 of 3" in page
    assert "Too early to compare B with A." in page
    end_runs(experiment)
    turn(experiment)
    assert "of 3 100%" not in strip_tags(page_of(client, experiment))


def test_tags_steps_and_how_calls_were_answered_are_shown(client, ann):
    experiment = start(client, ann, 1)
    turn(experiment)
    cell = experiment.cells.get(candidate__position=1)
    make_step(cell.run, tool="find", answered_by="held_back")
    make_step(cell.run, tool="find")
    end_runs(experiment)
    experiment = turn(experiment)

    page = page_of(client, experiment, f"?cell={cell.pk}")

    assert '<span class="tag clip">t</span>' in page
    assert "2 tool calls held back 1" in strip_tags(page)


def test_ones_own_score_is_compared_with_that_of_evaluators(client, ann):
    experiment = make_worse(client, ann)
    cells = list(experiment.cells.filter(candidate__position=1)[:2])
    for cell, rating in zip(cells, ("bad", "good"), strict=True):
        here = f"/experiments/{experiment.pk}/?cell={cell.pk}"
        answer = client.post(
            f"/runs/{cell.run_id}/rate/", {"rating": rating, "here": here}
        )
        assert answer.url == here

    page = page_of(client, experiment, f"?cell={cells[1].pk}")

    assert "agree with people in 50% of 2 rated runs" in strip_tags(page)
    assert "Agrees with people on 50% of 2 runs" in strip_tags(page)
    evaluator = experiment.evaluators.get().evaluator_id
    page = client.get(f"/evaluators/{evaluator}/").content.decode()
    assert "Agrees with people on 50% of 2 runs" in strip_tags(page)
    away = {"rating": "good", "here": "https://elsewhere.example/"}
    assert "elsewhere" not in client.post(f"/runs/{cell.run_id}/rate/", away).url


def test_failed_runs_are_counted_by_error(client, ann):
    experiment = start(client, ann)
    turn(experiment)
    second = experiment.cells.filter(candidate__position=1).order_by("place")
    pks = list(second.values_list("run", flat=True))
    end_runs(experiment)
    failed = Run.objects.filter(pk__in=pks)
    failed.update(status="failed", error_code="rate_limit")
    failed.filter(pk=pks[0]).update(error_code="timeout")
    experiment = turn(experiment)

    page = strip_tags(page_of(client, experiment))

    said = "B Failed: Rate limit reached 2 · Model server did not respond in time 1"
    assert said in page


def test_stops_and_resumes_with_another_budget(client, ann):
    experiment = start(client, ann)
    client.post(f"/experiments/{experiment.pk}/stop/")
    assert "Resume it to run what is missing" in page_of(client, experiment)

    client.post(f"/experiments/{experiment.pk}/resume/", {"budget": "2.5"})

    experiment.refresh_from_db()
    assert (experiment.status, experiment.budget) == ("running", 2.5)


def test_a_budget_of_nothing_is_refused(client, ann):
    experiment = start(client, ann)
    client.post(f"/experiments/{experiment.pk}/stop/")
    agent = experiment.candidates.all()[0].agent
    url = f"/experiments/new/?dataset={experiment.dataset_id}&agent={agent.pk}"

    answer = client.post(url, {"budget": "0"})

    said = "Enter a number above 0, or leave it empty."
    assert answer.context["form"].errors["budget"] == [said]

    client.post(f"/experiments/{experiment.pk}/resume/", {"budget": "0"})

    assert "in dollars above 0, or leave it empty." in page_of(client, experiment)
    experiment.refresh_from_db()
    assert (experiment.status, experiment.budget) == ("stopped", None)


def test_experiments_of_others_are_not_found(client, ann):
    experiment = start(client, ann)
    client.force_login(make_user("other"))

    assert client.get(f"/experiments/{experiment.pk}/").status_code == 404
    assert client.post(f"/experiments/{experiment.pk}/stop/").status_code == 404
    assert "No experiments yet" in client.get("/experiments/").content.decode()


def test_the_page_takes_few_queries_for_many_examples(
    client, ann, django_assert_max_num_queries
):
    experiment = start(client, ann, 60)
    for _ in range(4):
        turn(experiment)
        end_runs(experiment)

    with django_assert_max_num_queries(30):
        page = page_of(client, experiment)
    assert "1 to 50 of 60" in strip_tags(page)


def test_repetitions_and_tags_have_figures(client, ann):
    experiment = start(client, ann, repetitions=2)
    turn(experiment)
    end_runs(experiment)
    experiment = turn(experiment)

    page = strip_tags(page_of(client, experiment))
    assert "pass@2 pass^2" in page
    assert "t 3 100.0% 100.0% the same" in page


def test_a_chinese_viewer_reads_why_an_experiment_stopped_in_chinese(client, ann):
    experiment = start(client, ann, 1)
    Agent.objects.update(archived_at=timezone.now())
    experiment = turn(experiment)
    client.post("/preferences/language/", {"language": "zh-hans"})

    page = page_of(client, experiment)

    assert "该智能体已归档" in page
    assert experiment.problem == "The agent is archived. Unarchive it to run it."


def test_a_chinese_viewer_reads_which_input_is_wrong_in_chinese(client, ann):
    experiment = start(client, ann, 1)
    Example.objects.update(inputs={"input": " "})
    cell = turn(experiment).cells.first()
    client.post("/preferences/language/", {"language": "zh-hans"})

    page = page_of(client, experiment, f"?cell={cell.pk}")

    assert "请输入消息" in page
    assert cell.problem == "Enter a message."


def test_the_labels_of_a_comparison_are_translated_and_those_of_people_are_not(
    client, ann
):
    experiment = make_worse(client, ann)
    cell = experiment.cells.filter(candidate__position=1).first()
    judge = {"provider": "p", "model": "m", "rubric": "r", "form": "pairwise"}
    client.post("/preferences/language/", {"language": "zh-hans"})
    tags = []
    for kind, config in (("judge", judge), ("contains", {})):
        cell.scores.update(label="worse")
        cell.scores.get().revision.evaluator.revisions.update(kind=kind, config=config)
        page = page_of(client, experiment, f"?cell={cell.pk}")
        tags.append(re.search(r'<b>Contains</b> <span class="tag">(.*?)</span>', page))

    assert [tag and tag[1] for tag in tags] == ["变差", "worse"]


def read_form(form) -> dict[str, object]:
    """Return what a browser would send."""
    found = {form.add_prefix(name): form[name].value() for name in form.fields}
    for each in getattr(form, "rows", ()):
        found |= read_form(each)
    found["rows"] = len(getattr(form, "rows", ()))
    return {name: value for name, value in found.items() if value}


def open_again(client, experiment: Experiment):
    """Return the URL and the form that *Run again* leads to."""
    link = re.search(r'href="(/experiments/new/[^"]+)"', page_of(client, experiment))
    url = html.unescape(link[1])
    return url, client.get(url).context["form"]


def list_candidates(experiment: Experiment) -> list[tuple[object, ...]]:
    rows = experiment.candidates.order_by("position")
    return list(rows.values_list("label", "agent", "version", "changes", "spec"))


def test_the_form_adds_several_candidates_with_changes(client, ann):
    experiment = start(
        client,
        ann,
        candidates=["1"],
        **{**row(model="model-b"), **row(1), **row(2, base="1", temperature="0.5")},
    )

    labels = [one.label for one in experiment.candidates.all()]
    assert labels == ["Version 1", "Version 1, model-b", "Version 1, temperature 0.5"]


def test_rows_for_changes_are_added_and_removed_without_a_check(client, ann):
    agent, dataset = make_agent(ann), make_examples(ann, 1)
    url = f"/experiments/new/?dataset={dataset.pk}&agent={agent.pk}"
    sent = {**row(model="model-b"), "repetitions": "many", "name": "Refunds"}

    more = client.post(url, {**sent, "add": "1"}).context["form"]
    less = client.post(url, {**read_form(more), "remove": "0"}).context["form"]

    assert [one["model"].value() for one in more.rows] == ["model-b", None]
    assert (more["name"].value(), more["repetitions"].value()) == ("Refunds", "many")
    assert not more.errors
    assert [one["model"].value() or "" for one in less.rows] == [""]
    assert not Experiment.objects.exists()


def test_running_again_keeps_all_candidates_and_their_order(client, ann):
    prompt = make_prompt(ann, name="Polite")
    agent, other = make_agent(ann), make_agent(ann, name="Other")
    old, new = make_version(agent), make_version(agent)
    for _ in range(MAX_OFFERED_VERSIONS):
        make_version(agent, spec=new.spec)
    polite = use_library_prompt(CandidateChanges(model="model-b"), prompt)
    experiment = create_experiment(
        make_examples(ann, 1),
        [
            CandidateChoice(agent, old, CandidateChanges(parameters={"top_p": 0.5})),
            CandidateChoice(agent, old),
            CandidateChoice(agent, new),
            CandidateChoice(agent, new),
            CandidateChoice(other),
            CandidateChoice(agent, None, polite),
        ],
        [make_revision(ann)],
        by=ann,
        plan=ExperimentPlan(repetitions=2),
    )
    prompt.delete()

    url, form = open_again(client, experiment)
    client.post(url, read_form(form))

    again = Experiment.objects.exclude(pk=experiment.pk).get()
    assert list_candidates(again) == list_candidates(experiment)
    assert again.repetitions == 2


CHANGES = {
    "base": "1",
    "instructions": "Answer in one word.",
    "temperature": "0.2",
    "more": '{"top_p": 0.5}',
}


def test_the_form_adds_a_candidate_with_another_prompt_and_parameters(client, ann):
    experiment = start(client, ann, **row(**CHANGES))

    changed = experiment.candidates.select_related("spec").last()
    spec = load_spec(changed.spec)
    assert spec.prompt.messages[0].template == "Answer in one word."
    assert spec.model.parameters == {"temperature": 0.2, "top_p": 0.5}
    assert changed.label == "Version 1, other instructions, top_p 0.5, temperature 0.2"
    assert "Version 1, other instructions, top_p 0.5" in page_of(client, experiment)


def test_the_page_shows_how_the_settings_of_a_candidate_differ(client, ann):
    experiment = start(client, ann, **row(base="draft", instructions="One word."))

    page = client.get(f"/experiments/{experiment.pk}/")

    changed = page.context["lines"][-1]
    assert page.context["lines"][0].settings == []
    assert "Prompt" in [one.label for one in changed.settings]
    shown = strip_tags(page.content.decode())
    assert "Settings of C that differ from A" in shown
    assert "One word." in [line.text for line in changed.settings[-1].lines]


def test_running_again_begins_with_the_changes(client, ann):
    experiment = start(client, ann, **row(**CHANGES))
    link = re.search(r'href="(/experiments/new/[^"]+)"', page_of(client, experiment))

    form = client.get(html.unescape(link[1])).context["form"]

    [changed] = form.rows
    for name in ("base", "instructions", "more"):
        assert changed[name].value() == CHANGES[name]
    assert changed["temperature"].value() == 0.2
    assert form["candidates"].value() == ["1", "draft"]


def test_running_again_keeps_the_text_of_a_prompt_of_the_library(client, ann):
    prompt = make_prompt(ann, name="Polite")
    experiment = start(client, ann, **row(prompt="polite"))
    prompt.delete()
    link = re.search(r'href="(/experiments/new/[^"]+)"', page_of(client, experiment))
    url = html.unescape(link[1])
    form = client.get(url).context["form"]

    client.post(url, read_form(form))

    first, again = (one.candidates.last() for one in Experiment.objects.order_by("pk"))
    assert first.label == again.label == 'Draft, prompt "polite"'
    assert first.spec_id == again.spec_id


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"instructions": "Write to {customer}."}, "instructions", "customer: 1"),
        ({"instructions": "Answer {this way}."}, "instructions", "not a variable"),
        ({"temperature": "9"}, "temperature", "2"),
        ({"max_tokens": "0"}, "max_tokens", "1"),
        ({"more": "[1]"}, "more", "JSON object"),
        ({"more": '{"temperature": "hot"}'}, "temperature", "0 to 2"),
        ({"more": '{"stream": false}'}, "more", "stream"),
        ({"instructions": "Hi", "prompt": "polite"}, "prompt", "not both"),
    ],
)
def test_a_wrong_change_is_refused_at_its_field(client, ann, change, field, words):
    make_prompt(ann, name="Polite")
    agent, dataset = make_agent(ann), make_examples(ann, 1)
    fields = {
        "candidates": ["draft"],
        "evaluators": [make_revision(ann).evaluator_id],
        "tool_mode": "hold_back",
        "repetitions": 1,
        "concurrency": 1,
        **row(**change),
    }

    answer = client.post(
        f"/experiments/new/?dataset={dataset.pk}&agent={agent.pk}", fields
    )

    [changed] = answer.context["form"].rows
    assert words in str(changed.errors[field])
    assert f'<a href="#id_changed-0-{field}">' in answer.content.decode()
    assert '<details class="fold" open id="experiment-changed">' in (
        answer.content.decode()
    )
    assert not Experiment.objects.exists()


def test_only_editors_of_the_agent_run_it_with_changes(client, ann):
    agent = make_agent(make_user("eve"), visibility="everyone")
    make_version(agent)
    dataset = make_examples(ann, 1)
    url = f"/experiments/new/?dataset={dataset.pk}&agent={agent.pk}"

    page = client.get(url).text
    sent = {
        **row(model="model-b"),
        "evaluators": [make_revision(ann).evaluator_id],
        "tool_mode": "hold_back",
        "repetitions": 1,
        "concurrency": 1,
    }
    answer = client.post(url, sent)

    assert "Candidates with changes" not in page
    assert "Only its owner can run" in answer.text
    assert not Experiment.objects.exists()


def test_people_score_the_runs_of_an_experiment_in_a_queue(client, ann):
    experiment = make_worse(client, ann)
    queue = make_queue(ann, runs=0)
    address = f"/queues/add/?experiment={experiment.pk}"
    assert address in page_of(client, experiment)
    offered = client.get(address).content.decode()
    assert "All 16 ended runs of experiment" in offered

    given = {"experiment": experiment.pk, "queue": queue.pk}
    client.post("/queues/add/", given)
    assert queue.items.count() == 16
    score_next(queue, ann, 5)

    cell = ExperimentRun.objects.get(run__queued__annotations__by=ann)
    page = strip_tags(page_of(client, experiment, f"?cell={cell.pk}"))
    assert "ann person" in " ".join(page.split())
    assert "Agrees with people on 100% of 1 run" in " ".join(page.split())
    client.force_login(make_user("eve"))
    assert "ended runs of experiment" not in client.get(address).content.decode()
    client.post("/queues/add/", given)
    assert queue.items.count() == 16


def test_older_experiments_are_on_the_next_page(client, ann, monkeypatch):
    monkeypatch.setattr("runs.views.experiments.page.EXPERIMENTS_PER_PAGE", 2)
    for number in range(3):
        experiment = make_experiment(count=1)
        Experiment.objects.filter(pk=experiment.pk).update(
            owner=ann, name=f"Trial {number}"
        )

    first = client.get("/experiments/?q=trial").text
    second = client.get("/experiments/?q=trial&page=2").text

    assert 'href="?q=trial&amp;page=2"' in first
    assert ("Trial 2" in first, "Trial 0" in first) == (True, False)
    assert ("Trial 2" in second, "Trial 0" in second) == (False, True)
