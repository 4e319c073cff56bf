"""The page *Use from code*: how programs call an agent, and their tokens."""

from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse, QueryDict
from django.shortcuts import get_object_or_404
from django.utils.safestring import mark_safe
from django.views.decorators.http import require_GET

from runs.forms.accounts import TokenForm
from runs.htmx import HtmxRequest, render_page_or_part
from runs.models import Agent, AgentVersion
from runs.services.accounts.tokens import list_own_tokens
from runs.services.spec.freeze import variables_of_agent, variables_of_spec
from runs.store.specs import load_spec
from runs.ui.code_colors import CodeColors
from runs.views.agents.code_examples import EXAMPLES, LABELS, build_agent_call
from runs.views.people import pop_new_token
from runs.whole_number import parse_whole_number

MAX_VERSIONS = 50
"""Newest versions to choose from."""
CALL_SCOPES = ["read", "run"]


@require_GET
def agent_code(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show an example in the language of `?lang=`, for `?version=` and `?stream=`."""
    agents = Agent.objects.usable_by(request.user).select_related("provider", "prompt")
    agent = get_object_or_404(agents, pk=pk)
    context = {
        "agent": agent,
        "may_edit": Agent.objects.editable_by(request.user).filter(pk=pk).exists(),
        **build_code_context(agent, request.GET),
    }
    parts = ("agents/code.html", "agents/_code.html")
    if request.htmx:
        return render_page_or_part(request, *parts, context)
    context |= {
        "form": TokenForm(initial={"name": agent.name[:120], "scopes": CALL_SCOPES}),
        "made": pop_new_token(request),
        "tokens": list_own_tokens(request.user),
        "next": request.get_full_path(),
    }
    return render_page_or_part(request, *parts, context)


def build_code_context(agent: Agent, query: QueryDict) -> dict[str, Any]:
    """Return the example, and what else can be chosen."""
    versions = list(agent.versions.select_related("spec")[:MAX_VERSIONS])
    pinned = find_version(versions, query.get("version", ""))
    language = query.get("lang", "")
    language = language if language in EXAMPLES else "python"
    call = build_agent_call(
        agent,
        list_variables(agent, pinned or next(iter(versions), None)),
        version=pinned.number if pinned else None,
        stream="stream" in query,
    )
    example = EXAMPLES[language](call)
    kept = {name: query[name] for name in ("version", "stream") if query.get(name)}
    return {
        "call": call,
        "example": example,
        "html": mark_safe(CodeColors().highlight(example.code, example.language)),  # noqa: S308  (escaped there)
        "lang": language,
        "languages": [
            (name, label, "?" + urlencode({"lang": name, **kept}))
            for name, label in LABELS.items()
        ],
        "versions": versions,
        "pinned": pinned,
    }


def find_version(versions: list[AgentVersion], number: str) -> AgentVersion | None:
    asked = parse_whole_number(number)
    return next((one for one in versions if one.number == asked), None)


def list_variables(agent: Agent, version: AgentVersion | None) -> tuple[str, ...]:
    """Return the inputs of a run of the version, or of the draft."""
    if version is None:
        return variables_of_agent(agent)
    return variables_of_spec(load_spec(version.spec))
