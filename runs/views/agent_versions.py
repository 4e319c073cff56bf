"""The versions of an agent: what each changed, and putting one back into the draft."""

from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.db.models import Count
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_POST

from runs.htmx import HtmxRequest
from runs.models import Agent, AgentVersion
from runs.services.definition import described_as, remembers
from runs.services.freeze_agent import freeze_agent, spec_of
from runs.services.restore_version import restore_version
from runs.services.save_agent import token_of
from runs.views.version_diff import Difference, State, differences


@require_GET
def agent_versions(request: HtmxRequest, pk: int) -> HttpResponse:
    """List the versions, and compare two of them; without `?to=` with the draft."""
    agent = get_object_or_404(Agent.objects.editable_by(request.user), pk=pk)
    versions = list(
        agent.versions.select_related("by", "spec")
        .annotate(run_count=Count("runs"))
        .order_by("-number")  # where rows are counted, the table's own order is lost
    )
    old = chosen(versions, request.GET.get("from", "")) or next(iter(versions), None)
    new = chosen(versions, request.GET.get("to", ""))
    context: dict[str, Any] = {
        "agent": agent,
        "versions": versions,
        "old": old,
        "new": new,
        "token": token_of(agent),
    }
    if old is not None:
        context["is_kept"] = is_kept(agent, versions)
        context["differences"] = differences(state_of(agent, old), state_of(agent, new))
    return render(request, "agents/versions.html", context)


@require_POST
def agent_restore(request: HtmxRequest, pk: int, number: int) -> HttpResponse:
    """Put a version back into the draft; published ones stay as they are."""
    agent = get_object_or_404(Agent.objects.editable_by(request.user), pk=pk)
    version = AgentVersion.objects.filter(agent=agent, number=number).first()
    if version is None:
        raise Http404
    if request.POST.get("seen", token_of(agent)) != token_of(agent):
        messages.warning(request, "The draft changed since this page was made. Look.")
        return redirect("agent-versions", pk=pk)
    said = restore_version(version, by=request.user)
    told = f"The draft is version {number} again. Publish it, and runs use it."
    messages.success(request, told)
    for sentence in said:
        messages.warning(request, sentence)
    return redirect("agent-edit", pk=pk)


def is_kept(agent: Agent, versions: Sequence[AgentVersion]) -> bool:
    """Whether a version is what the draft is, so that replacing it loses nothing."""
    draft = state_of(agent, None)
    return any(not differs(agent, version, draft) for version in versions)


def differs(agent: Agent, version: AgentVersion, draft: State) -> bool:
    """Whether the draft is anything else than `version`."""
    try:
        return bool(differences(state_of(agent, version), draft))
    except ValueError:  # a spec of another release that cannot be read any more
        return True


def chosen(versions: Sequence[AgentVersion], number: str) -> AgentVersion | None:
    """Return the version of that number; None for the draft, and for nonsense."""
    return next((one for one in versions if str(one.number) == number), None)


def state_of(agent: Agent, version: AgentVersion | None) -> State:
    """Return what a run of the version, or of the draft, would be made of."""
    spec = spec_of(version.spec) if version else freeze_agent(agent)
    memory, told = remembers(agent, version), described_as(agent, version)
    return State(spec, memory, told)


def changed_since(
    agent: Agent, version: AgentVersion | None, draft: State
) -> list[Difference]:
    """Return the places in which `draft` differs from `version`; none without."""
    if version is None:
        return []
    try:
        return differences(state_of(agent, version), draft)
    except ValueError:  # a spec of another release that cannot be read any more
        return [Difference("Everything", "of an earlier release", "as it is now")]
