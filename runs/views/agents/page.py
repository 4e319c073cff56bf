"""The page of an agent with its run form."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext
from django.views.decorators.http import require_GET, require_POST

from runs.engine.types import ExecutorOptions
from runs.forms.runs.inputs import RunForm
from runs.htmx import HtmxRequest
from runs.models import Agent, PromptTemplate, Provider, Run
from runs.services.agents.publish import get_latest_version, is_published
from runs.services.agents.run_counts import count_agent_runs
from runs.services.agents.used_by import list_using_agents
from runs.services.agents.version_figures import load_version_figures
from runs.services.errors import InputsRefused, RunsError
from runs.services.runs.start import start_run
from runs.services.spec.inline_prompt import is_inline_prompt
from runs.ui.kind_labels import get_kind_label
from runs.ui.run_list_rows import annotate_current_tool, build_run_rows
from runs.views.schedules.page import list_agent_schedules

MAX_RECENT_RUNS = 10


@require_GET
def agent_detail(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show one agent: a form to run it, its configuration, its recent runs."""
    agent = get_object_or_404(Agent.objects.visible_to(request.user), pk=pk)
    if agent.is_playground:
        return redirect("playground")
    return render(
        request,
        "agents/detail.html",
        build_agent_page_context(request, agent, RunForm(agent)),
    )


@require_POST
def agent_run(request: HtmxRequest, pk: int) -> HttpResponse:
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
            form.add_field_errors(error.errors)
        except RunsError as error:
            form.add_error(None, str(error))
        else:
            return redirect("run-detail", pk=run.pk)
    return render(
        request, "agents/detail.html", build_agent_page_context(request, agent, form)
    )


def build_agent_page_context(
    request: HtmxRequest, agent: Agent, form: RunForm
) -> dict[str, Any]:
    runs = Run.objects.visible_to(request.user).filter(agent=agent, is_test=False)
    counted = count_agent_runs([agent.pk], request.user)
    newest = get_latest_version(agent)
    uses = agent.uses.select_related("tool", "sub_agent")
    may_edit = Agent.objects.editable_by(request.user).filter(pk=agent.pk).exists()
    return {
        "agent": agent,
        "form": form,
        "kind": get_kind_label(agent.kind),
        "uses": uses,
        "rows": build_run_rows(
            annotate_current_tool(runs).order_by("-pk")[:MAX_RECENT_RUNS]
        ),
        "run_count": counted[agent.pk].total if agent.pk in counted else 0,
        "used_by": list_using_agents(agent, request.user),
        "schedules": list_agent_schedules(agent, user=request.user),
        "may_edit": may_edit,
        "figures": load_version_figures(agent) if may_edit else [],
        "newest": newest,
        "versions": agent.versions.select_related("by")[:10],
        "has_changed": newest is not None and not is_published(agent),
        "limit_words": describe_executor_limits(
            ExecutorOptions.model_validate(agent.executor)
        ),
        "may_see_provider": Provider.objects.visible_to(request.user)
        .filter(pk=agent.provider_id)
        .exists(),
        "may_see_prompt": PromptTemplate.objects.visible_to(request.user)
        .filter(pk=agent.prompt_id or 0)
        .exists(),
        "inline_prompt": agent.prompt is not None
        and is_inline_prompt(agent.prompt, agent),
    }


def describe_executor_limits(options: ExecutorOptions) -> str:
    budget = options.budget
    limits = []
    if (rounds := options.max_iterations) is not None:
        limits.append(
            ngettext("%(count)s round", "%(count)s rounds", rounds) % {"count": rounds}
        )
    if (seconds := options.max_execution_time) is not None:
        limits.append(
            _("%(seconds)s s working time") % {"seconds": number_format(f"{seconds:g}")}
        )
    if budget and (tokens := budget.tokens) is not None:
        count = number_format(tokens, use_l10n=True, force_grouping=True)
        limits.append(
            ngettext("%(count)s token", "%(count)s tokens", tokens) % {"count": count}
        )
    if budget and budget.cost is not None:
        limits.append(f"${number_format(f'{budget.cost:g}')}")
    return pgettext("between items of a list", ", ").join(limits) or _("None")
