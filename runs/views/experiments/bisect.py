"""The search for the version at which an example began to fail."""

from typing import Any, NamedTuple

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from runs.evaluation.versions.bisection import count_most_versions
from runs.forms.experiments.bisect import BisectForm
from runs.forms.experiments.resume import ResumeExperimentForm
from runs.htmx import HtmxRequest, render_page_or_part
from runs.models import Agent, AgentVersion, Experiment, ExperimentRun
from runs.services.errors import RunsError
from runs.services.experiments.bisect import (
    BisectionReport,
    CannotBisect,
    ProbedVersion,
    get_default_tool_mode,
    list_earlier_versions,
    list_failed_revisions,
    load_bisection,
    start_bisection,
)
from runs.services.experiments.figures import load_stored_figures
from runs.services.tool_modes.changed_tools import find_changed_tools
from runs.ui.evaluation.bisection import describe_bisection, describe_next_version
from runs.views.experiments.table import load_selected_cell
from runs.whole_number import parse_whole_number


class VersionLine(NamedTuple):
    """A version that was run, or a number of versions that were not."""

    probed: ProbedVersion | None
    not_run: int = 0
    first: int | None = None
    """The oldest of those that were not run."""
    last: int | None = None


@require_http_methods(["GET", "POST"])
def experiment_bisect(request: HtmxRequest, pk: int) -> HttpResponse:
    """Say what will be run, and start the search from the cell of the query."""
    rows = Experiment.objects.visible_to(request.user)
    experiment = get_object_or_404(rows.select_related("dataset"), pk=pk)
    cells = experiment.cells.select_related(
        "experiment__dataset", "example", "candidate__agent", "candidate__version"
    )
    cell = cells.filter(pk=parse_whole_number(request.GET.get("cell", "")) or 0).first()
    try:
        if cell is None:
            raise CannotBisect(_("Select a run that an evaluator did not pass."))
        revisions = list_failed_revisions(cell)
        count = len(list_earlier_versions(cell.candidate)) + 1
    except CannotBisect as refused:
        messages.error(request, str(refused))
        return redirect("experiment-detail", pk=pk)
    form = BisectForm(
        request.POST or None,
        initial={
            "repetitions": experiment.repetitions,
            "tool_mode": get_default_tool_mode(experiment),
        },
    )
    if form.is_valid():
        try:
            search = start_bisection(cell, by=request.user, plan=form.build_plan())
        except RunsError as refused:
            form.add_error(None, str(refused))
        else:
            return redirect("experiment-detail", pk=search.pk)
    context = {
        "form": form,
        "experiment": experiment,
        "cell": cell,
        "evaluators": [one.evaluator.name for one in revisions],
        "count": count,
        "most": count_most_versions(count),
        "changed_tools": find_changed_tools(cell.run) if cell.run else [],
    }
    return render(request, "experiments/bisect.html", context)


def render_bisection(request: HtmxRequest, experiment: Experiment) -> HttpResponse:
    """Show how far the search is, or what it has found."""
    return render_page_or_part(
        request,
        "experiments/detail.html",
        "experiments/_bisection.html",
        build_bisection_context(request, experiment),
    )


def build_bisection_context(
    request: HtmxRequest, experiment: Experiment
) -> dict[str, Any]:
    unfinished = experiment.cells.filter(state=ExperimentRun.State.STARTED).count()
    report = load_bisection(experiment)
    agent = report.failing.agent
    figures = load_stored_figures(experiment)
    selected = load_selected_cell(
        experiment,
        parse_whole_number(request.GET.get("cell", "")),
        request.user,
        agreements={},
    )
    is_editable = Agent.objects.editable_by(request.user).filter(pk=agent.pk).exists()
    return {
        "experiment": experiment,
        "bisection": experiment.bisection,
        "agent": agent,
        "here": request.get_full_path(),
        "is_open": experiment.is_running or unfinished > 0 or experiment.needs_figures,
        "progress": {"unfinished": unfinished},
        "conclusion": describe_bisection(report),
        "next_version": describe_next_version(report) if experiment.is_running else "",
        "lines": list_version_lines(report),
        "around": find_change(report),
        "may_compare_versions": is_editable,
        "cost": sum(one.cost for one in figures.candidates),
        "resume_form": ResumeExperimentForm(initial={"budget": experiment.budget}),
        "selected": selected,
        "is_cell_asked": True,
        "kept": "",
        "start": 0,
    }


class FoundChange(NamedTuple):
    """The last version that passes, and the first one that fails."""

    good: ProbedVersion
    bad: ProbedVersion
    note: str
    """Of the version that fails, as its author wrote it."""


def find_change(report: BisectionReport) -> FoundChange | None:
    """Return the two versions between which the example began to fail, if found."""
    state = report.state
    if state.kind != "found" or state.last_good is None or state.first_bad is None:
        return None
    bad = report.versions[state.first_bad]
    version: AgentVersion | None = bad.candidate.version if bad.candidate else None
    note = version.note if version else ""
    return FoundChange(report.versions[state.last_good], bad, note)


def list_version_lines(report: BisectionReport) -> list[VersionLine]:
    """Return the versions that were run, newest first, and the gaps between them."""
    lines: list[VersionLine] = []
    for one in reversed(report.versions):
        if one.candidate is not None:
            lines.append(VersionLine(one))
        elif lines and lines[-1].probed is None:
            former = lines.pop()
            lines.append(VersionLine(None, former.not_run + 1, one.number, former.last))
        else:
            lines.append(VersionLine(None, 1, one.number, one.number))
    return lines
