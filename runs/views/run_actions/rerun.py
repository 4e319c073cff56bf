"""The page that re-runs an agent with the inputs of a run."""

from typing import NamedTuple

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from runs.forms.runs.rerun import SAME, RerunForm
from runs.htmx import HtmxRequest
from runs.models import AgentVersion, Run
from runs.services.errors import InputsRefused, RunsError
from runs.services.runs.start import freeze_newest_version, load_frozen_agent, start_run
from runs.services.spec.freeze import variables_of_spec
from runs.services.tool_modes.select_mode import get_tool_mode
from runs.store.specs import load_spec
from runs.views.run.context import select_page_relations

SETTING_EDITS = {"prompt", "model", "tools", "limits"}
"""Edits of a fork that a re-run keeps."""


class NewestAgent(NamedTuple):
    """The agent as it is now."""

    input_names: tuple[str, ...]
    version: AgentVersion | None
    is_same: bool
    problem: str = ""
    """Why it cannot run."""


@require_http_methods(["GET", "POST"])
def run_again(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show the inputs; POST starts the new run, unchanged if no inputs are sent."""
    run = get_object_or_404(
        select_page_relations(Run.objects.visible_to(request.user)), pk=pk
    )
    if run.is_imported:
        text = _("Another program executed this run. It cannot be re-run.")
        messages.error(request, text)
        return redirect("run-detail", pk)
    newest = load_newest_agent(run)
    form = RerunForm(
        run,
        request.POST if request.method == "POST" else None,
        same=variables_of_spec(load_spec(run.spec)),
        newest=newest.input_names,
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
                frozen=load_frozen_agent(run) if form.selected_agent == SAME else None,
                tool_mode=get_tool_mode(run),
            )
        except InputsRefused as refused:
            form.add_field_errors(refused.errors)
        except RunsError as refused:
            form.add_error(None, str(refused))
        else:
            return redirect("run-detail", new.pk)
    context = {
        "run": run,
        "form": form,
        "newest": newest,
        "is_edited": bool(SETTING_EDITS & set(run.fork_edits)),
    }
    return render(request, "runs/again.html", context)


def load_newest_agent(run: Run) -> NewestAgent:
    """Return the newest version of the agent, or its draft."""
    same = load_spec(run.spec)
    try:
        frozen = freeze_newest_version(run.agent, draft=run.version_id is None)
    except RunsError as refused:
        return NewestAgent(
            variables_of_spec(same), None, is_same=False, problem=str(refused)
        )
    return NewestAgent(
        variables_of_spec(frozen.spec), frozen.version, is_same=frozen.spec == same
    )
