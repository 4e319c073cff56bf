"""The versions of an agent: compare them, and restore one to the draft."""

from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.db.models import Count
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from runs.engine.types import AgentSpec
from runs.htmx import HtmxRequest, render_page_or_part
from runs.models import Agent, AgentVersion
from runs.services.agentfile.evaluation import list_used_datasets
from runs.services.agents.restore_version import restore_version
from runs.services.agents.save import get_draft_token
from runs.services.agents.version_figures import load_version_figures
from runs.services.spec.definition import (
    get_agent_description,
    get_suggested_questions,
    uses_memory,
)
from runs.services.spec.freeze import freeze_agent
from runs.store.specs import load_spec
from runs.views.agents.version_diff import (
    AgentState,
    VersionDifference,
    diff_agent_states,
)


@require_GET
def agent_versions(request: HtmxRequest, pk: int) -> HttpResponse:
    """List the versions and compare two of them; without `?to=`, with the draft.

    For htmx, return only the differences.
    """
    agent = get_object_or_404(Agent.objects.editable_by(request.user), pk=pk)
    versions = list(
        agent.versions.select_related("by", "spec")
        .annotate(run_count=Count("runs"))
        .order_by("-number")  # where rows are counted, the table's own order is lost
    )
    old = find_compared_version(versions, request.GET.get("from", "")) or next(
        iter(versions), None
    )
    new = find_compared_version(versions, request.GET.get("to", ""))
    context: dict[str, Any] = {
        "agent": agent,
        "versions": versions,
        "old": old,
        "new": new,
        "token": get_draft_token(agent),
        "figures": load_version_figures(agent),
        "dataset_count": list_used_datasets([agent])
        .filter(owner=agent.owner_id)
        .count(),
    }
    if old is not None:
        context["is_kept"] = is_draft_saved_as_version(agent, versions)
        context["differences"] = diff_agent_states(
            load_agent_state(agent, old), load_agent_state(agent, new)
        )
    parts = ("agents/versions.html", "agents/_differences.html")
    return render_page_or_part(request, *parts, context)


@require_POST
def agent_restore(request: HtmxRequest, pk: int, number: int) -> HttpResponse:
    """Restore a version to the draft; published versions do not change."""
    agent = get_object_or_404(Agent.objects.editable_by(request.user), pk=pk)
    version = AgentVersion.objects.filter(agent=agent, number=number).first()
    if version is None:
        raise Http404
    if request.POST.get("seen", get_draft_token(agent)) != get_draft_token(agent):
        messages.warning(
            request,
            _("The draft has changed since this page was loaded. Check it first."),
        )
        return redirect("agent-versions", pk=pk)
    said = restore_version(version, by=request.user)
    messages.success(
        request,
        _("Version %(number)s restored to the draft. Publish it to use it in runs.")
        % {"number": number},
    )
    for sentence in said:
        messages.warning(request, sentence)
    return redirect("agent-edit", pk=pk)


def is_draft_saved_as_version(agent: Agent, versions: Sequence[AgentVersion]) -> bool:
    """Whether a version equals the draft, so that replacing the draft loses nothing."""
    draft = load_agent_state(agent, None)
    return any(not draft_differs_from(agent, version, draft) for version in versions)


def draft_differs_from(agent: Agent, version: AgentVersion, draft: AgentState) -> bool:
    try:
        return bool(diff_agent_states(load_agent_state(agent, version), draft))
    except ValueError:  # a spec of another release that can no longer be read
        return True


def find_compared_version(
    versions: Sequence[AgentVersion], number: str
) -> AgentVersion | None:
    """Return the version with this number; None for the draft or invalid input."""
    return next((one for one in versions if str(one.number) == number), None)


def load_agent_state(
    agent: Agent, version: AgentVersion | None, *, draft: AgentSpec | None = None
) -> AgentState:
    """Return a version, or the draft, whose spec may be known."""
    spec = load_spec(version.spec) if version else draft or freeze_agent(agent)
    return AgentState(
        spec,
        memory=uses_memory(agent, version),
        description=get_agent_description(agent, version),
        suggested_questions=get_suggested_questions(agent, version),
    )


def list_changes_since(
    agent: Agent, version: AgentVersion | None, draft: AgentState
) -> list[VersionDifference]:
    """Return the differences of `draft` from `version`; none without a version."""
    if version is None:
        return []
    try:
        return diff_agent_states(load_agent_state(agent, version), draft)
    except ValueError:  # a spec of another release that can no longer be read
        return [
            VersionDifference(
                _("Everything"), _("From an earlier release"), _("Current draft")
            )
        ]
