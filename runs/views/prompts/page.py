"""The list of prompts, the form, and the preview of the first request."""

from typing import Any

from django.contrib import messages
from django.db.models import Count, Q
from django.http import HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from runs.engine.kinds.kind import AgentKind
from runs.engine.kinds.registry import AGENT_KINDS
from runs.engine.types import AgentSpec, PromptSpec
from runs.forms.prompt import (
    PromptForm,
    engine_variables,
    list_prompt_errors,
    required_variables,
)
from runs.htmx import HtmxRequest, render_page_or_part
from runs.models import PromptTemplate
from runs.models.agents import INLINE_SLUG
from runs.services.agents.used_by import list_using_agents
from runs.services.spec.inline_prompt import get_prompt_fields
from runs.services.spec.starting_prompts import (
    get_starting_prompt,
    list_starting_prompts,
)
from runs.ui.kind_labels import get_kind_label, list_kind_choices
from runs.ui.list_search import get_search_text, search_rows
from runs.views.lists.actions import build_definition_choices
from runs.views.lists.page import render_list
from runs.views.prompts.preview import RequestPreview, build_first_request
from tools.spec import ToolSpec


@require_GET
def prompt_list(request: HtmxRequest) -> HttpResponse:
    """Show the prompts visible to the user, except inline prompts of agents."""
    away = request.GET.get("archived") == "1"
    prompts = (
        PromptTemplate.objects.visible_to(request.user)
        .filter(archived_at__isnull=not away)
        .exclude(slug__regex=INLINE_SLUG)
        .select_related("owner")
        .annotate(
            agent_count=Count(
                "agents", filter=Q(agents__archived_at=None), distinct=True
            )
        )
        .order_by("name")
    )
    query = get_search_text(request)
    prompts = search_rows(prompts, query, "name", "slug", "owner__username")
    titles = dict(list_kind_choices())
    return render_list(
        request,
        "prompt",
        rows=prompts,
        away=away,
        q=query,
        titles=titles,
        **build_definition_choices(PromptTemplate, request.user, away=away),
    )


@require_http_methods(["GET", "POST"])
def prompt_create(request: HtmxRequest) -> HttpResponse:
    """Create a prompt, starting from the built-in prompt of a kind."""
    blank = PromptTemplate(owner=request.user)
    form = PromptForm(
        request.POST or None, instance=blank, initial=get_prompt_initial(request.GET)
    )
    if form.is_valid():
        prompt = form.save()
        messages.success(request, _("Prompt %(name)s created.") % {"name": prompt})
        return redirect("prompt-detail", pk=prompt.pk)
    context = {
        "form": form,
        "prompt": None,
        "kinds": [get_kind_label(name) for name in AGENT_KINDS],
        "chosen": form["kind"].value(),
        "beginnings": list_starting_prompts(get_selected_kind(request.GET)),
        "begun": get_starting_prompt(
            get_selected_kind(request.GET).name, request.GET.get("start", "")
        ).name,
        "preview": build_prompt_preview(form),
    }
    return render(request, "prompts/form.html", context)


@require_http_methods(["GET", "POST"])
def prompt_detail(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show one prompt; its owner can change it."""
    prompt = get_object_or_404(PromptTemplate.objects.visible_to(request.user), pk=pk)
    may = PromptTemplate.objects.editable_by(request.user).filter(pk=pk).exists()
    form = PromptForm((request.POST or None) if may else None, instance=prompt)
    if form.is_valid():
        form.save()
        messages.success(request, _("Prompt %(name)s saved.") % {"name": prompt})
        return redirect("prompt-detail", pk=pk)
    context = {
        "form": form,
        "prompt": PromptTemplate.objects.get(pk=pk) if form.errors else prompt,
        "may_edit": may,
        "used_by": list_using_agents(prompt, request.user),
        "preview": build_prompt_preview(form),
    }
    name = "prompts/form.html" if may else "prompts/detail.html"
    return render(request, name, context)


@require_POST
def prompt_preview(request: HtmxRequest) -> HttpResponse:
    form = PromptForm(request.POST, instance=PromptTemplate(owner=request.user))
    form.is_valid()
    context = {"form": form, "preview": build_prompt_preview(form)}
    return render_page_or_part(
        request, "prompts/preview.html", "prompts/_preview.html", context
    )


def get_selected_kind(query: QueryDict) -> AgentKind:
    return AGENT_KINDS.get(query.get("kind", ""), AGENT_KINDS["tool-calling"])


def get_prompt_initial(query: QueryDict) -> dict[str, Any]:
    """Return the initial values of a new prompt: the selected starting prompt."""
    kind = get_selected_kind(query)
    fields = get_prompt_fields(
        get_starting_prompt(kind.name, query.get("start", "")).prompt
    )
    shape = "messages" if fields["messages"] else "text"
    return {"kind": kind.name, "shape": shape, **fields}


def build_prompt_preview(form: PromptForm) -> RequestPreview:
    """Return the first request of an agent with two sample tools."""
    given = getattr(form, "cleaned_data", {})
    kind = str(given.get("kind") or form["kind"].value())
    prompt = form.prompt_spec()
    return build_kind_preview(kind, prompt)


def build_kind_preview(kind: str, prompt: PromptSpec) -> RequestPreview:
    """Return the first request of an agent of `kind`, or the errors of the prompt."""
    if kind not in AGENT_KINDS:
        return RequestPreview(
            mistakes=[_("Agent kind %(name)s not found.") % {"name": kind}]
        )
    return RequestPreview(
        mistakes=list_prompt_errors(kind, prompt),
        input_variables=required_variables(prompt),
        engine_variables=engine_variables(prompt),
        request=build_first_request(
            AgentSpec(kind=kind, prompt=prompt, tools=make_sample_tools())
        ),
    )


def make_sample_tools() -> tuple[ToolSpec, ...]:
    return (
        ToolSpec(
            name="weather",
            description=_("Forecast for a city and a day."),
            args_schema={
                "type": "object",
                "properties": {"city": {"type": "string"}, "day": {"type": "string"}},
                "required": ["city"],
            },
        ),
        ToolSpec(name="calculator", description=_("Arithmetic.")),
    )
