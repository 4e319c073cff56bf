"""Prompts: the list, the form, and the preview of what a model would get."""

from typing import Any

from django.contrib import messages
from django.db.models import Count, Q
from django.http import HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from runs.engine.kinds.kind import Kind
from runs.engine.kinds.registry import KINDS
from runs.engine.types import AgentSpec, PromptSpec
from runs.forms.prompt import PromptForm, asked_for, filled_in, prompt_mistakes
from runs.htmx import HtmxRequest, page_or_part
from runs.models import PromptTemplate
from runs.services.own_prompt import fields_of
from runs.services.starting_prompts import starting_prompt, starting_prompts
from runs.views.preview import Preview, first_request
from tools.spec import ToolSpec

SAMPLE_TOOLS = (
    ToolSpec(
        name="weather",
        description="Forecast for a city and a day.",
        args_schema={
            "type": "object",
            "properties": {"city": {"type": "string"}, "day": {"type": "string"}},
            "required": ["city"],
        },
    ),
    ToolSpec(name="calculator", description="Arithmetic."),
)
"""Tools that stand in for those of an agent."""


@require_GET
def prompt_list(request: HtmxRequest) -> HttpResponse:
    """Show the prompts one may use; those of a single agent are on its page."""
    away = request.GET.get("archived") == "1"
    prompts = (
        PromptTemplate.objects.visible_to(request.user)
        .filter(archived_at__isnull=not away)
        .exclude(slug__startswith="instructions-")
        .select_related("owner")
        .annotate(
            agent_count=Count(
                "agents", filter=Q(agents__archived_at=None), distinct=True
            )
        )
        .order_by("name")
    )
    titles = {kind.name: kind.title for kind in KINDS.values()}
    context = {"prompts": prompts, "away": away, "titles": titles}
    return render(request, "prompts/list.html", context)


@require_http_methods(["GET", "POST"])
def prompt_create(request: HtmxRequest) -> HttpResponse:
    """Ask for a new prompt, beginning with the own one of a kind."""
    blank = PromptTemplate(owner=request.user)
    form = PromptForm(request.POST or None, instance=blank, initial=start(request.GET))
    if form.is_valid():
        prompt = form.save()
        messages.success(request, f"{prompt} is saved.")
        return redirect("prompt-detail", pk=prompt.pk)
    context = {
        "form": form,
        "prompt": None,
        "kinds": KINDS.values(),
        "chosen": form["kind"].value(),
        "beginnings": starting_prompts(kind_in(request.GET)),
        "begun": starting_prompt(
            kind_in(request.GET).name, request.GET.get("start", "")
        ).name,
        "preview": preview_of(form),
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
        messages.success(request, f"{prompt} is saved.")
        return redirect("prompt-detail", pk=pk)
    context = {
        "form": form,
        "prompt": PromptTemplate.objects.get(pk=pk) if form.errors else prompt,
        "may_edit": may,
        "agents": prompt.agents.filter(archived_at=None).order_by("name")[:20],
        "preview": preview_of(form),
    }
    name = "prompts/form.html" if may else "prompts/detail.html"
    return render(request, name, context)


@require_POST
def prompt_preview(request: HtmxRequest) -> HttpResponse:
    """Show what a model would get of the prompt as it is typed; nothing is saved."""
    form = PromptForm(request.POST, instance=PromptTemplate(owner=request.user))
    form.is_valid()
    context = {"form": form, "preview": preview_of(form)}
    return page_or_part(
        request, "prompts/preview.html", "prompts/_preview.html", context
    )


def kind_in(query: QueryDict) -> Kind:
    """Return the kind that was chosen to begin with."""
    return KINDS.get(query.get("kind", ""), KINDS["tool-calling"])


def start(query: QueryDict) -> dict[str, Any]:
    """Return the fields of a new prompt: the beginning that was chosen, of its kind."""
    kind = kind_in(query)
    fields = fields_of(starting_prompt(kind.name, query.get("start", "")).prompt)
    shape = "messages" if fields["messages"] else "text"
    return {"kind": kind.name, "shape": shape, **fields}


def preview_of(form: PromptForm) -> Preview:
    """Return the request that an agent with two sample tools would send first."""
    given = getattr(form, "cleaned_data", {})
    kind = str(given.get("kind") or form["kind"].value())
    prompt = form.prompt_spec()
    return preview_prompt(kind, prompt)


def preview_prompt(kind: str, prompt: PromptSpec) -> Preview:
    """Return what `kind` makes of `prompt`, or what is wrong with it."""
    if kind not in KINDS:
        return Preview(mistakes=[f"There is no kind {kind!r}."])
    return Preview(
        mistakes=prompt_mistakes(kind, prompt),
        asked=asked_for(prompt),
        filled=filled_in(prompt),
        request=first_request(AgentSpec(kind=kind, prompt=prompt, tools=SAMPLE_TOOLS)),
    )
