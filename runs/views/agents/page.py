"""Agents: the list, one agent with its run form, publishing."""

from typing import Any

from django.contrib import messages
from django.db.models import Count, Max, Q
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_POST

from runs.engine.kinds.registry import KINDS
from runs.engine.types import ExecutorOptions
from runs.forms.run import RunForm
from runs.htmx import HtmxRequest, page_or_part
from runs.models import Agent, Run
from runs.services.errors import InputsRefused, RunsError
from runs.services.own_prompt import is_own
from runs.services.publish_agent import is_published, newest_of, publish_draft
from runs.services.start_run import start_run
from runs.views.list_rows import rows_of, with_doing
from runs.views.schedules import of_agent

RECENT = 10


@require_GET
def agent_list(request: HtmxRequest) -> HttpResponse:
    """Show the agents one may use."""
    away = request.GET.get("archived") == "1"
    query = request.GET.get("q", "").replace("\0", "").strip()
    mine = Q(runs__in=Run.objects.visible_to(request.user))
    agents = (
        Agent.objects.visible_to(request.user)
        .filter(archived_at__isnull=not away, is_playground=False)
        .select_related("provider", "owner")
        .annotate(
            run_count=Count("runs", filter=mine, distinct=True),
            last_run=Max("runs__created_at", filter=mine),
            tool_count=Count("uses", distinct=True),
            version=Max("versions__number"),
        )
        .order_by("name")
    )
    if query:
        agents = agents.filter(
            Q(name__icontains=query) | Q(description__icontains=query)
        )
    titles = {kind.name: kind.title for kind in KINDS.values()}
    context = {"agents": agents, "away": away, "q": query, "titles": titles}
    return page_or_part(request, "agents/list.html", "agents/_list.html", context)


@require_GET
def agent_detail(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show one agent: a form to run it, what it is made of, its last runs."""
    agent = get_object_or_404(Agent.objects.visible_to(request.user), pk=pk)
    if agent.is_playground:
        return redirect("playground")
    return render(request, "agents/detail.html", shown(request, agent, RunForm(agent)))


@require_POST
def agent_run(request: HtmxRequest, pk: int) -> HttpResponse:
    """Start a run with the inputs of the form, and go to its page."""
    agent = get_object_or_404(Agent.objects.visible_to(request.user), pk=pk)
    form = RunForm(agent, request.POST)
    if form.is_valid():
        draft = form.cleaned_data["draft"]
        try:
            run = start_run(
                agent,
                by=request.user,
                inputs=form.inputs(),
                draft=draft,
                is_test=draft,
            )
        except InputsRefused as error:
            form.take(error.errors)
        except RunsError as error:
            form.add_error(None, str(error))
        else:
            return redirect("run-detail", pk=run.pk)
    return render(request, "agents/detail.html", shown(request, agent, form))


@require_POST
def agent_publish(request: HtmxRequest, pk: int) -> HttpResponse:
    """Make the agent as it is a numbered version, which runs use from now on."""
    agent = get_object_or_404(Agent.objects.editable_by(request.user), pk=pk)
    note = request.POST.get("note", "").replace("\0", "").strip()
    seen = request.POST.get("seen") or None
    try:
        version, is_new = publish_draft(agent, by=request.user, note=note, seen=seen)
    except RunsError as error:
        messages.error(request, str(error))
        return redirect("agent-edit", pk=pk)
    told = f"Version {version.number} is published: runs use it from now on."
    same = f"Nothing has changed since version {version.number}."
    messages.success(request, told if is_new else same)
    return redirect("agent-detail", pk=pk)


def shown(request: HtmxRequest, agent: Agent, form: RunForm) -> dict[str, Any]:
    """Return what the page of an agent shows."""
    kind = KINDS.get(agent.kind)
    runs = Run.objects.visible_to(request.user).filter(agent=agent)
    newest = newest_of(agent)
    uses = agent.uses.select_related("tool", "sub_agent")
    return {
        "agent": agent,
        "form": form,
        "kind": kind,
        "uses": uses,
        "rows": rows_of(with_doing(runs).order_by("-pk")[:RECENT]),
        "run_count": runs.count(),
        "schedules": of_agent(agent, user=request.user),
        "may_edit": Agent.objects.editable_by(request.user)
        .filter(pk=agent.pk)
        .exists(),
        "newest": newest,
        "versions": agent.versions.select_related("by")[:10],
        "has_changed": newest is not None and not is_published(agent),
        "limit_words": limit_words(ExecutorOptions.model_validate(agent.executor)),
        "own_prompt": agent.prompt is not None and is_own(agent.prompt, agent),
    }


def limit_words(options: ExecutorOptions) -> str:
    """Say where a run of the agent stops."""
    budget = options.budget
    rounds, seconds = options.max_iterations, options.max_execution_time
    words = [
        f"{rounds} round{'' if rounds == 1 else 's'}" if rounds is not None else "",
        f"{seconds:g} s of work" if seconds is not None else "",
        f"{budget.tokens:,} tokens" if budget and budget.tokens is not None else "",
        f"${budget.cost:g}" if budget and budget.cost is not None else "",
    ]
    return ", ".join(filter(None, words)) or "none"
