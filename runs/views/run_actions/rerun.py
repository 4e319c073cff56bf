"""The page that runs an agent again on the inputs of a run."""

from typing import NamedTuple

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods

from runs.forms.again import SAME, AgainForm
from runs.htmx import HtmxRequest
from runs.models import AgentVersion, Run
from runs.services.errors import InputsRefused, RunsError
from runs.services.freeze_agent import spec_of, variables_of_spec
from runs.services.start_run import freeze_newest, frozen_of, start_run
from runs.views.run_context import loaded

SETTINGS = {"prompt", "model", "tools", "limits"}
"""Edits of a fork that a new run of the same keeps."""


class Newest(NamedTuple):
    """What would run now, beside what ran then."""

    names: tuple[str, ...]
    version: AgentVersion | None
    is_same: bool
    flaw: str = ""
    """Why it cannot run as it is."""


@require_http_methods(["GET", "POST"])
def again(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show the inputs to edit; POST starts the new run, with nothing sent as it was."""
    run = get_object_or_404(loaded(Run.objects.visible_to(request.user)), pk=pk)
    newest = newest_of(run)
    form = AgainForm(
        run,
        request.POST if request.method == "POST" else None,
        same=variables_of_spec(spec_of(run.spec)),
        newest=newest.names,
    )
    if form.is_valid():
        try:
            new = start_run(
                run.agent,
                by=request.user,
                inputs=form.inputs(),
                conversation=run.conversation if run.owner == request.user else None,
                draft=run.version_id is None,
                is_test=run.is_test,
                frozen=frozen_of(run) if form.chosen == SAME else None,
            )
        except InputsRefused as refused:
            form.take(refused.errors)
        except RunsError as refused:
            form.add_error(None, str(refused))
        else:
            return redirect("run-detail", new.pk)
    context = {
        "run": run,
        "form": form,
        "newest": newest,
        "is_edited": bool(SETTINGS & set(run.fork_edits)),
    }
    return render(request, "runs/again.html", context)


def newest_of(run: Run) -> Newest:
    """Return what the agent is now: its newest version, or its draft."""
    same = spec_of(run.spec)
    try:
        frozen = freeze_newest(run.agent, draft=run.version_id is None)
    except RunsError as refused:
        return Newest(variables_of_spec(same), None, is_same=False, flaw=str(refused))
    return Newest(
        variables_of_spec(frozen.spec), frozen.version, is_same=frozen.spec == same
    )
