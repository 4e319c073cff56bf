"""The list of experiments, the page of one, and its actions."""

from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from runs.forms.experiments.resume import ResumeExperimentForm
from runs.htmx import HtmxRequest, render_page_or_part
from runs.models import Agent, Dataset, Experiment, ExperimentCandidate
from runs.services.agents.publish import get_latest_version, matches_version
from runs.services.annotation.agreement import load_experiment_agreement
from runs.services.experiments.bisect import BisectionReport, load_bisections
from runs.services.experiments.control import (
    resume_experiment,
    score_again,
    stop_experiment,
)
from runs.services.experiments.figures import (
    CandidateFigures,
    ComparisonFigures,
    EvaluatorFigures,
    ExperimentFigures,
    TagComparison,
    load_stored_figures,
)
from runs.services.experiments.outdated_recordings import find_outdated_tools
from runs.services.spec.freeze import freeze_agent
from runs.store.specs import compute_spec_digest, dump_spec, load_spec
from runs.ui.evaluation.bisection import describe_bisection
from runs.ui.evaluation.verdict import (
    LETTERS,
    describe_clear_tags,
    describe_comparison,
    describe_failed_runs,
    describe_one_candidate,
    describe_unscored_runs,
    describe_visible_difference,
)
from runs.ui.list_search import encode_query, get_search_text, search_rows
from runs.views.compare.page import SettingDifference, compare_specs
from runs.views.experiments.bisect import render_bisection
from runs.views.experiments.progress import load_progress
from runs.views.experiments.table import (
    COMPARING_SORTS,
    FILTERS,
    SORTS,
    build_experiment_table,
    find_selected_place,
    find_worse_cell,
    load_selected_cell,
)
from runs.views.lists.page import render_list
from runs.whole_number import parse_whole_number
from tools.text.translatable import join_sentences
from tools.ui.diff import DiffBudget

EXPERIMENTS_PER_PAGE = 100
POLLED_OFTEN = 4_000
"""Runs of an experiment whose page is updated every 2 seconds; a larger one, 10."""


class CandidateLine(NamedTuple):
    """A candidate in the table of figures; positions are in percent."""

    letter: str
    candidate: ExperimentCandidate
    figures: CandidateFigures | None
    against: ComparisonFigures | None
    low: float
    high: float
    rate: float | None
    failures: list[tuple[str, int]]
    settings: list[SettingDifference]
    """What differs from the baseline."""
    over: int
    """Runs that have ended."""
    total: int
    progress: float


class EvaluatorLine(NamedTuple):
    """An evaluator, and its figures by the letters of the candidates."""

    name: str
    figures: dict[str, EvaluatorFigures | None]


class TagLine(NamedTuple):
    """A tag, and for each candidate how many of its runs passed, and of how many."""

    tag: str
    examples: int
    runs: list[tuple[int, int]]
    against: tuple[TagComparison, ...]
    """Each other candidate against the baseline."""


@require_GET
def experiment_list(request: HtmxRequest) -> HttpResponse:
    """Show the experiments visible to the user, newest first."""
    query = get_search_text(request)
    rows = search_rows(
        Experiment.objects.visible_to(request.user),
        query,
        *("name", "dataset__name", "candidates__label"),
    ).distinct()
    rows = rows.select_related("dataset", "owner", "bisection").prefetch_related(
        "candidates"
    )
    pages = Paginator(rows.order_by("-pk"), EXPERIMENTS_PER_PAGE)
    page = pages.get_page(request.GET.get("page"))
    experiments = list(page)
    searches = load_bisections([one for one in experiments if one.is_bisection])
    lines = [(one, describe_result(one, searches.get(one.pk))) for one in experiments]
    return render_list(
        request,
        "experiment",
        rows=lines,
        page=page,
        page_query=f"?{urlencode({'q': query})}",
        q=query,
        actions=["stop"],
    )


@require_GET
def experiment_detail(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show the result, the examples and the selected cell; the part is all of it."""
    experiment = get_visible_experiment(request, pk)
    if experiment.is_bisection:
        return render_bisection(request, experiment)
    return render_page_or_part(
        request,
        "experiments/detail.html",
        "experiments/_result.html",
        build_experiment_context(request, experiment),
    )


@require_POST
def experiment_stop(request: HtmxRequest, pk: int) -> HttpResponse:
    """Start no more runs."""
    experiment = get_visible_experiment(request, pk)
    if stop_experiment(experiment, by=request.user):
        messages.success(
            request,
            _("Experiment stopped. Runs that have started are still scored."),
        )
    return redirect("experiment-detail", pk=pk)


@require_POST
def experiment_resume(request: HtmxRequest, pk: int) -> HttpResponse:
    """Start the runs that are missing, with the budget of the form."""
    experiment = get_visible_experiment(request, pk)
    form = ResumeExperimentForm(request.POST)
    if not form.is_valid():
        messages.error(
            request, _("Enter a budget in dollars above 0, or leave it empty.")
        )
    elif resume_experiment(
        experiment, by=request.user, budget=form.cleaned_data["budget"]
    ):
        messages.success(request, _("Experiment resumed."))
    return redirect("experiment-detail", pk=pk)


@require_POST
def experiment_score_again(request: HtmxRequest, pk: int, cell_pk: int) -> HttpResponse:
    """Let workers score a run again, and go back to the cell."""
    experiment = get_visible_experiment(request, pk)
    cell = get_object_or_404(experiment.cells, pk=cell_pk)
    if score_again(cell):
        messages.success(request, _("The run is scored again in a moment."))
    page = reverse("experiment-detail", args=[pk])
    return redirect(f"{page}?cell={cell.pk}")


def get_visible_experiment(request: HtmxRequest, pk: int) -> Experiment:
    rows = Experiment.objects.visible_to(request.user)
    return get_object_or_404(
        rows.select_related("dataset", "owner", "bisection"), pk=pk
    )


def build_experiment_context(
    request: HtmxRequest, experiment: Experiment
) -> dict[str, Any]:
    candidates = list(experiment.candidates.select_related("agent", "version", "spec"))
    figures = load_stored_figures(experiment)
    progress = load_progress(experiment)
    letters = {one.pk: LETTERS[one.position] for one in candidates}
    key = request.GET.get("show", "")
    key = key if key in FILTERS else ""
    sorts = list_sorts(candidates)
    asked_sort = request.GET.get("sort", "")
    asked_sort = asked_sort if asked_sort in sorts else ""
    sort = asked_sort or (key if key in sorts else "number")
    start = parse_whole_number(request.GET.get("from", "")) or 0
    table = build_experiment_table(
        experiment, candidates, key=key, sort=sort, start=start
    )
    asked = parse_whole_number(request.GET.get("cell", ""))
    agreement = load_experiment_agreement(experiment, viewer=request.user)
    selected = load_selected_cell(
        experiment,
        asked or find_worse_cell(table),
        request.user,
        agreements=agreement.revisions,
    )
    return {
        "experiment": experiment,
        "here": request.get_full_path(),
        "is_open": experiment.is_running
        or progress.unfinished > 0
        or experiment.needs_figures,
        "poll_seconds": 2 if experiment.total <= POLLED_OFTEN else 10,
        "progress": progress,
        "figures": figures,
        "lines": build_candidate_lines(
            experiment, candidates, figures, table.failures, progress.ended
        ),
        "agreement": agreement,
        "evaluator_lines": build_evaluator_lines(experiment, candidates, figures),
        "outdated_tools": find_outdated_tools(experiment, candidates),
        "tag_lines": build_tag_lines(figures),
        "tag_sentences": describe_clear_tags(figures, letters),
        "sentences": [
            *build_sentences(experiment, candidates, figures, progress.over),
            *list_left_out(candidates, figures),
        ],
        "note": describe_visible_difference(figures.comparisons[0])
        if figures.comparisons
        else "",
        "is_partly_repeated": any(one.is_partly_repeated for one in figures.candidates),
        "cost": sum(one.cost for one in figures.candidates),
        "judge_cost": sum(one.judge_cost for one in figures.candidates),
        "seconds": (experiment.ended_at - experiment.created_at).total_seconds()
        if experiment.ended_at
        else None,
        "agent_to_publish": find_agent_to_publish(request, candidates)
        if experiment.status == Experiment.Status.DONE
        else None,
        "table": table,
        "show": key,
        "sorts": sorts,
        "sort": sort,
        "kept": encode_query({"show": key, "sort": asked_sort}),
        "sort_kept": encode_query({"sort": asked_sort}),
        "start": start,
        "selected": selected,
        "place": find_selected_place(table, selected.cell) if selected else None,
        "is_cell_asked": bool(asked and selected),
        "resume_form": ResumeExperimentForm(initial={"budget": experiment.budget}),
        "may_bisect": True,
        "may_edit_dataset": Dataset.objects.editable_by(request.user)
        .filter(pk=experiment.dataset_id)
        .exists(),
    }


def list_sorts(candidates: list[ExperimentCandidate]) -> dict[str, Any]:
    """Return the orders of the table; those by difference need two candidates."""
    is_alone = len(candidates) == 1
    return {
        name: label
        for name, label in SORTS.items()
        if not (is_alone and name in COMPARING_SORTS)
    }


def find_agent_to_publish(
    request: HtmxRequest, candidates: list[ExperimentCandidate]
) -> Agent | None:
    """Return an agent whose draft, as it still is, was compared with a baseline."""
    for candidate in candidates[1:]:
        if candidate.version_id is not None or candidate.changes:
            continue
        editable = Agent.objects.editable_by(request.user)
        agent = editable.filter(pk=candidate.agent_id).first()
        if agent is None:
            continue
        draft, newest = freeze_agent(agent), get_latest_version(agent)
        if compute_spec_digest(dump_spec(draft)) != candidate.spec.digest:
            continue
        if newest is None or not matches_version(newest, agent, draft):
            return agent
    return None


def build_candidate_lines(
    experiment: Experiment,
    candidates: list[ExperimentCandidate],
    figures: ExperimentFigures,
    failures: dict[int, list[tuple[str, int]]],
    over: dict[int, int],
) -> list[CandidateLine]:
    """Return a line for each candidate, with figures if there are some."""
    found = {one.candidate: one for one in figures.candidates}
    against = {one.candidate: one for one in figures.comparisons}
    lines = []
    total = experiment.total // max(len(candidates), 1)
    effort, specs = DiffBudget(), [load_spec(one.spec) for one in candidates]
    for candidate, spec in zip(candidates, specs, strict=True):
        one = found.get(candidate.pk)
        rate = one.rate if one else None
        lines.append(
            CandidateLine(
                LETTERS[candidate.position],
                candidate,
                one,
                against.get(candidate.pk),
                round(100 * one.low, 1) if one else 0.0,
                round(100 * one.high, 1) if one else 0.0,
                None if rate is None else round(100 * rate, 1),
                failures.get(candidate.pk, []),
                compare_specs(specs[0], spec, effort),
                over.get(candidate.pk, 0),
                total,
                round(100 * over.get(candidate.pk, 0) / max(total, 1), 1),
            )
        )
    return lines


def build_evaluator_lines(
    experiment: Experiment,
    candidates: list[ExperimentCandidate],
    figures: ExperimentFigures,
) -> list[EvaluatorLine]:
    found = {
        (one.candidate, each.revision): each
        for one in figures.candidates
        for each in one.evaluators
    }
    revisions = experiment.evaluators.select_related("evaluator")
    return [
        EvaluatorLine(
            revision.evaluator.name,
            {
                LETTERS[one.position]: found.get((one.pk, revision.pk))
                for one in candidates
            },
        )
        for revision in revisions.order_by("evaluator__name")
    ]


def build_tag_lines(figures: ExperimentFigures) -> list[TagLine]:
    """Return a line for each tag; none while nothing has passed or failed."""
    return [
        TagLine(
            one.tag,
            one.examples,
            list(zip(one.passed, one.decided, strict=True)),
            one.comparisons,
        )
        for one in figures.tags
        if any(one.decided)
    ]


def build_sentences(
    experiment: Experiment,
    candidates: list[ExperimentCandidate],
    figures: ExperimentFigures,
    over: int,
) -> list[str]:
    """Return the sentence about each candidate against the baseline."""
    if not figures.candidates:
        return [_("No run has ended yet.")]
    letters = {one.pk: LETTERS[one.position] for one in candidates}
    is_early = experiment.is_running and over * 2 < experiment.total
    compared = [
        describe_comparison(one, letter=letters[one.candidate], is_early=is_early)
        for one in figures.comparisons
    ]
    return compared or [describe_one_candidate(figures.candidates[0])]


def list_left_out(
    candidates: list[ExperimentCandidate], figures: ExperimentFigures
) -> list[str]:
    """Return the sentences about runs that the comparison leaves out."""
    letters = {one.pk: LETTERS[one.position] for one in candidates}
    unscored = describe_unscored_runs(figures.candidates, letters)
    failed = describe_failed_runs(figures.candidates, letters)
    return [*failed, unscored] if unscored else failed


def describe_result(experiment: Experiment, search: BisectionReport | None) -> str:
    if search is not None:
        return describe_bisection(search)
    figures = load_stored_figures(experiment)
    candidates = list(experiment.candidates.all())
    over = sum(one.done for one in figures.candidates)
    first = build_sentences(experiment, candidates, figures, over)[0]
    return join_sentences([first, *list_left_out(candidates, figures)])
