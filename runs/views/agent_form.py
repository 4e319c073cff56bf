"""Making and changing an agent: the draft is saved as one types."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from runs.engine.kinds.registry import KINDS
from runs.forms.agent import AgentForm
from runs.forms.prompt import asked_for, filled_in
from runs.htmx import HtmxRequest, page_or_part, wants_part
from runs.models import Agent, Provider
from runs.services.errors import DraftMoved
from runs.services.starting_prompts import beginnings, instructions_to_start_from
from runs.views.agent_models import models_of, provider_rows, suits
from runs.views.agent_state import draft_state
from runs.views.agent_try import try_context
from runs.views.preview import Preview, first_request

POLICIES = [
    ("off", "Off", ""),
    ("default", "Default", ""),
    ("allow", "Allow", "good"),
    ("ask", "Ask", "need"),
    ("deny", "Deny", "bad"),
]
USUAL_KINDS = ["tool-calling", "react", "structured-chat"]
"""Shown at once; the others are a click away."""
OUTPUT = ["output_schema", "parsing", "parsing_text"]
CONTEXT = ["trim_intermediate_steps", "context_tokens", "context_method"]
"""Fields of the folds, which are open where one is set."""


@require_http_methods(["GET", "POST"])
def agent_create(request: HtmxRequest) -> HttpResponse:
    """Ask for a new agent."""
    if not Provider.objects.usable_by(request.user).exists():
        messages.warning(request, "An agent needs a provider. Add one first.")
        return redirect("provider-create")
    blank = Agent(owner=request.user, executor={})
    form = AgentForm(
        request.POST or None, instance=blank, user=request.user, initial=start(request)
    )
    if form.is_valid():
        agent = form.save()
        messages.success(request, f"{agent} is saved as a draft. Try it here.")
        return redirect("agent-edit", pk=agent.pk)
    return render(request, "agents/form.html", shown(request, form, None))


@require_http_methods(["GET", "POST"])
def agent_edit(request: HtmxRequest, pk: int) -> HttpResponse:
    """Change the draft; runs that are under way keep what they began with.

    To htmx it gives the right pane alone, as `?try=` names it.
    """
    agent = get_object_or_404(Agent.objects.editable_by(request.user), pk=pk)
    if agent.is_playground:
        return redirect("playground")
    parts = ("agents/form.html", "agents/_try.html")
    if request.method == "GET" and wants_part(request):
        context = {"agent": agent, **try_context(agent, request.GET, user=request.user)}
        context["preview"] = preview_of(AgentForm(instance=agent, user=request.user))
        return page_or_part(request, *parts, context)
    form = AgentForm(
        request.POST or None,
        instance=agent,
        user=request.user,
        initial=started(request),
    )
    has_moved = False
    if form.is_valid():
        try:
            form.save(seen=seen_by(request))
        except DraftMoved:
            has_moved = True
        else:
            messages.success(request, f"{agent} is saved.")
            return redirect("agent-edit", pk=pk)
    stored = Agent.objects.get(pk=pk) if form.is_bound else agent
    context = shown(request, form, stored, has_moved=has_moved)
    return page_or_part(request, *parts, context)


@require_POST
def agent_save(request: HtmxRequest, pk: int) -> HttpResponse:
    """Save the draft as far as it can be stored, and say how it stands."""
    agent = get_object_or_404(Agent.objects.editable_by(request.user), pk=pk)
    form = AgentForm(request.POST, instance=agent, user=request.user)
    form.is_valid()
    has_moved, seen = False, seen_by(request) or ""
    try:
        form.save(seen=seen)
    except DraftMoved:
        has_moved = True
    if not wants_part(request):
        return redirect("agent-edit", pk=pk)
    stored = Agent.objects.select_related("provider", "prompt").get(pk=pk)
    state = draft_state(stored, form, has_moved=has_moved, seen=seen)
    return render(request, "agents/_state.html", {"state": state})


@require_POST
def agent_preview(request: HtmxRequest) -> HttpResponse:
    """Show the exact first request of the agent as it is typed; nothing is saved."""
    form = AgentForm(
        request.POST, instance=Agent(owner=request.user), user=request.user
    )
    form.is_valid()
    context = {"form": form, "preview": preview_of(form)}
    return page_or_part(
        request, "agents/preview.html", "agents/_preview_body.html", context
    )


@require_GET
def agent_models(request: HtmxRequest) -> HttpResponse:
    """Offer the models of the chosen provider, and say which kind suits the model."""
    chosen = request.GET.get("provider", "")
    model = request.GET.get("model", "")
    provider = provider_rows(request.user, chosen).first()
    context = {
        "models": models_of(request.user, chosen),
        "suits": suits(request.user, chosen, model),
        "usual": provider.default_model if provider else "",
    }
    return render(request, "agents/_models.html", context)


def seen_by(request: HtmxRequest) -> str | None:
    """Return the token of the draft that was edited; the later one's, to overwrite."""
    return request.POST.get("over") or request.POST.get("seen")


def start(request: HtmxRequest) -> dict[str, Any]:
    """Return what a new agent begins with: the kind suits the provider's model."""
    provider = Provider.objects.usable_by(request.user).order_by("pk").first()
    model = provider.default_model if provider else ""
    suited = suits(request.user, str(provider.pk if provider else ""), model)
    return {
        "kind": suited.kind,
        "provider": provider,
        "model": model,
        **started(request),
    }


def started(request: HtmxRequest) -> dict[str, Any]:
    """Return the instructions that were chosen to start from, without a script."""
    text = instructions_to_start_from(request.GET.get("start", ""))
    return {"instructions": text, "source": "write"} if text else {}


def shown(
    request: HtmxRequest,
    form: AgentForm,
    agent: Agent | None,
    *,
    has_moved: bool = False,
) -> dict[str, Any]:
    """Return what the form page shows."""
    provider, chosen = str(form["provider"].value() or ""), form["kind"].value()
    more = [kind for name, kind in KINDS.items() if name not in USUAL_KINDS]
    return {
        "form": form,
        "agent": agent,
        "state": draft_state(agent, form, has_moved=has_moved, seen=seen_by(request))
        if agent
        else None,
        "usual_kinds": [KINDS[name] for name in USUAL_KINDS],
        "more_kinds": more,
        "chosen_kind": chosen,
        "more_open": chosen in [kind.name for kind in more],
        "tools": [choice for choice in form.tools if choice.is_on],
        "library": [choice for choice in form.tools if not choice.is_on],
        "tool_count": len(form.tools),
        "policies": POLICIES,
        "output_open": any(is_set(form, name) for name in OUTPUT),
        "context_open": any(is_set(form, name) for name in CONTEXT),
        "models": models_of(form.user, provider),
        "suits": suits(form.user, provider, str(form["model"].value() or "")),
        "beginnings": beginnings(),
        "preview": preview_of(form),
        **(
            try_context(agent, request.GET, user=request.user)
            if agent
            else {"trying": "prompt"}
        ),
    }


def is_set(form: AgentForm, name: str) -> bool:
    """Whether a field holds anything else than a new agent begins with."""
    usual = form.fields[name].initial or ""
    return name in form.errors or (form[name].value() or "") != usual


def preview_of(form: AgentForm) -> Preview:
    """Return the exact first request, and what is wrong with the agent."""
    spec = form.preview_spec()
    prompt = spec.prompt or KINDS[spec.kind].prompt
    return Preview(
        mistakes=form.mistakes(),
        asked=asked_for(prompt),
        filled=filled_in(prompt),
        request=first_request(spec),
    )
