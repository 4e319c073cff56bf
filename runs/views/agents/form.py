"""Create and edit an agent; the draft is saved while the user types."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from runs.engine.kinds.registry import AGENT_KINDS, get_prompt_of_spec
from runs.engine.types import ExecutorOptions
from runs.forms.agents.agent import AgentForm
from runs.forms.agents.options import get_option_values
from runs.forms.prompt import engine_variables, required_variables
from runs.htmx import HtmxRequest, render_page_or_part, wants_part
from runs.models import Agent, Provider
from runs.services.agents.save import get_draft_token
from runs.services.errors import DraftConflict
from runs.services.spec.starting_prompts import (
    find_starting_instructions,
    list_starting_instructions,
)
from runs.ui.kind_labels import get_kind_label
from runs.views.agents.draft import get_draft_state
from runs.views.agents.kind_suggestion import (
    build_models_context,
    suggest_kind,
    warn_of_unlisted_model,
)
from runs.views.agents.library import build_library_context, render_permissions
from runs.views.agents.test_pane import build_test_pane_context
from runs.views.prompts.preview import RequestPreview, build_first_request

COMMON_KINDS = ["tool-calling", "react", "structured-chat"]
"""Shown first."""
OUTPUT_FIELDS = [
    "output_schema",
    "parsing",
    "parsing_text",
    "output_parser",
    "parsing_error_handler",
]
LIMIT_FIELDS = ["early_stopping_method", "max_concurrent_runs", "loop_guard"]
CONTEXT_FIELDS = ["trim_intermediate_steps", "context_tokens", "context_method"]
"""Fields of the folds; a fold is open if one of its fields is set."""


@require_http_methods(["GET", "POST"])
def agent_create(request: HtmxRequest) -> HttpResponse:
    if not Provider.objects.usable_by(request.user).exists():
        messages.warning(request, _("An agent needs a provider. Create one first."))
        return redirect("provider-create")
    blank = Agent(owner=request.user, executor={}, memory=True)
    form = AgentForm(
        request.POST or None,
        instance=blank,
        user=request.user,
        initial=get_agent_initial(request),
    )
    if form.is_valid():
        agent = form.save()
        messages.success(
            request,
            _("Agent %(name)s created as a draft. Test it here.") % {"name": agent},
        )
        warn_of_unlisted_model(request, agent)
        return redirect("agent-edit", pk=agent.pk)
    return render(
        request, "agents/form.html", build_agent_form_context(request, form, None)
    )


@require_http_methods(["GET", "POST"])
def agent_edit(request: HtmxRequest, pk: int) -> HttpResponse:
    """Edit the draft; runs that have started keep their settings.

    For htmx, return only the right pane that `?try=` names.
    """
    agent = get_object_or_404(Agent.objects.editable_by(request.user), pk=pk)
    if agent.is_playground:
        return redirect("playground")
    parts = ("agents/form.html", "agents/_try.html")
    if request.method == "GET" and wants_part(request):
        context = {
            "agent": agent,
            **build_test_pane_context(agent, request.GET, user=request.user),
        }
        context["preview"] = build_agent_preview(
            AgentForm(instance=agent, user=request.user)
        )
        return render_page_or_part(request, *parts, context)
    form = AgentForm(
        request.POST or None,
        instance=agent,
        user=request.user,
        initial=get_instructions_initial(request),
    )
    has_conflict, seen = False, get_seen_token(request)
    if form.is_valid():
        try:
            form.save(seen=seen)
        except DraftConflict:
            has_conflict = True
        else:
            messages.success(request, _("Agent %(name)s saved.") % {"name": agent})
            warn_of_unlisted_model(request, agent)
            return redirect("agent-edit", pk=pk)
    stored = Agent.objects.get(pk=pk) if form.is_bound else agent
    has_conflict = has_conflict or seen not in (None, get_draft_token(stored))
    context = build_agent_form_context(request, form, stored, has_conflict=has_conflict)
    return render_page_or_part(request, *parts, context)


@require_POST
def agent_save(request: HtmxRequest, pk: int) -> HttpResponse:
    """Save the valid fields of the draft and show its state."""
    agent = get_object_or_404(Agent.objects.editable_by(request.user), pk=pk)
    form = AgentForm(request.POST, instance=agent, user=request.user)
    form.full_clean()
    has_conflict, seen = False, get_seen_token(request) or ""
    try:
        form.save(seen=seen)
    except DraftConflict:
        has_conflict = True
    if not wants_part(request):
        return redirect("agent-edit", pk=pk)
    stored = Agent.objects.select_related("provider", "prompt").get(pk=pk)
    state = get_draft_state(stored, form, has_conflict=has_conflict, seen=seen)
    return render(request, "agents/_state.html", {"state": state})


@require_POST
def agent_preview(request: HtmxRequest) -> HttpResponse:
    """Preview the exact first request of the unsaved form."""
    form = AgentForm(
        request.POST, instance=Agent(owner=request.user), user=request.user
    )
    form.full_clean()
    context = {"form": form, "preview": build_agent_preview(form)}
    return render_page_or_part(
        request, "agents/preview.html", "agents/_preview_body.html", context
    )


@require_GET
def agent_models(request: HtmxRequest) -> HttpResponse:
    """List the models of the selected provider, and suggest a kind for the model."""
    chosen, model = request.GET.get("provider", ""), request.GET.get("model", "")
    context = build_models_context(request.user, chosen, model)
    return render(request, "agents/_models.html", context)


def get_seen_token(request: HtmxRequest) -> str | None:
    """Return the token of the edited draft; to overwrite, that of the later draft."""
    return request.POST.get("over") or request.POST.get("seen")


def get_agent_initial(request: HtmxRequest) -> dict[str, Any]:
    """Return the initial values of a new agent, with the kind for the default model."""
    provider = Provider.objects.usable_by(request.user).order_by("pk").first()
    model = provider.default_model if provider else ""
    suited = suggest_kind(request.user, str(provider.pk if provider else ""), model)
    return {
        "kind": suited.kind,
        "provider": provider,
        "model": model,
        **get_instructions_initial(request),
    }


def get_instructions_initial(request: HtmxRequest) -> dict[str, Any]:
    """Return the selected starting instructions, for browsers without a script."""
    text = find_starting_instructions(request.GET.get("start", ""))
    return {"instructions": text, "source": "write"} if text else {}


def build_agent_form_context(
    request: HtmxRequest,
    form: AgentForm,
    agent: Agent | None,
    *,
    has_conflict: bool = False,
) -> dict[str, Any]:
    provider, chosen = str(form["provider"].value() or ""), form["kind"].value()
    models = build_models_context(form.user, provider, str(form["model"].value() or ""))
    names = [*COMMON_KINDS, *(name for name in AGENT_KINDS if name not in COMMON_KINDS)]
    return {
        "form": form,
        "agent": agent,
        "state": get_draft_state(
            agent,
            form,
            is_refused=bool(form.errors),
            has_conflict=has_conflict,
            seen=get_seen_token(request),
        )
        if agent
        else None,
        "kinds": [get_kind_label(name) for name in names],
        "chosen_kind": chosen,
        "chosen_kind_title": get_kind_label(chosen).title
        if chosen in AGENT_KINDS
        else "",
        "kind_open": "kind" in form.errors or chosen != models["suits"].kind,
        "tools": [choice for choice in form.tools if choice.is_on],
        "tool_count": len(form.tools),
        "other_count": sum(not choice.is_on for choice in form.tools),
        "permissions": render_permissions(),
        **(build_library_context(form.tools) if "library" in request.GET else {}),
        "more_limits_open": any(is_field_set(form, name) for name in LIMIT_FIELDS),
        "output_open": any(is_field_set(form, name) for name in OUTPUT_FIELDS),
        "context_open": any(is_field_set(form, name) for name in CONTEXT_FIELDS),
        **models,
        "beginnings": list_starting_instructions(),
        "preview": build_agent_preview(form),
        **(
            build_test_pane_context(agent, request.GET, user=request.user)
            if agent
            else {"trying": "prompt"}
        ),
    }


def is_field_set(form: AgentForm, name: str) -> bool:
    """Whether a field differs from its initial value for a new agent."""
    if name not in form.fields:
        return False
    usual = get_option_values(ExecutorOptions())[name]
    return name in form.errors or (form[name].value() or "") != (usual or "")


def build_agent_preview(form: AgentForm) -> RequestPreview:
    """Return the exact first request and the errors of the agent."""
    spec = form.preview_spec()
    prompt = get_prompt_of_spec(spec)
    return RequestPreview(
        mistakes=form.list_errors(),
        input_variables=required_variables(prompt),
        engine_variables=engine_variables(prompt),
        request=build_first_request(spec),
    )
