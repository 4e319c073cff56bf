"""The page that compares two runs: figures, settings, steps, answers."""

from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.db.models import Case, QuerySet, Value, When
from django.http import HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, render
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET

from runs.engine.kinds.registry import get_prompt_of_spec
from runs.engine.prompts import templates_of_prompt
from runs.engine.types import AgentSpec
from runs.htmx import HtmxRequest, render_page_or_part
from runs.models import Resume, Run
from runs.services.forks.fork import get_spec_at_call
from runs.services.search.human_waits import get_work_seconds, load_human_waits
from runs.ui.format import duration, money, number
from runs.ui.markdown import render_markdown
from runs.ui.run_list_rows import annotate_current_tool, build_run_rows
from runs.views.compare.rows import (
    WINDOW,
    build_comparison_lines,
    count_pairs,
    fold_equal_pairs,
    pair_rows,
)
from runs.views.run.fork_tree import describe_fork
from runs.views.run.step_detail import indent_json
from runs.whole_number import parse_whole_number
from tools.ui.diff import DiffBudget, DiffLine, diff_texts

TENTHS_BELOW_SECONDS = 10
"""Seconds below which a time is shown in tenths."""
MAX_CANDIDATES = 20
"""Runs that are offered for comparison."""
MAX_SEARCHED_RUNS = 200
"""Newest runs of the agent that are searched for the same input."""


class RunFigure(NamedTuple):
    """A figure of one run, and its difference from the other run."""

    label: str
    value: str
    change: str = ""


@dataclass(frozen=True)
class ComparedRun:
    side: str
    run: Run
    words: str
    figures: tuple[RunFigure, ...]


class SettingDifference(NamedTuple):
    label: str
    a: str
    b: str
    lines: tuple[DiffLine, ...] = ()


@dataclass(frozen=True)
class AnswerComparison:
    words: str
    is_same: bool = False
    a: SafeString | str = ""
    b: SafeString | str = ""
    lines: tuple[DiffLine, ...] = ()


@require_GET
def run_compare(request: HtmxRequest) -> HttpResponse:
    """Compare `?a=` with `?b=`, or two `?run=`; offer candidates for a single one."""
    first, second = parse_compared_ids(request.GET)
    visible = Run.objects.visible_to(request.user).select_related(
        "agent", "version", "spec", "owner"
    )
    one = get_object_or_404(visible, pk=first) if first else None
    other = get_object_or_404(visible, pk=second) if second else None
    if one is None or other is None:
        return render_comparison_candidates(request, one or other)
    couples = pair_rows(one, other)
    shows_all = request.GET.get("show") == "all"
    items = list(couples) if shows_all else fold_equal_pairs(couples)
    start = min(
        parse_whole_number(request.GET.get("from", "")) or 0, max(len(items) - 1, 0)
    )
    context: dict[str, Any] = {
        "a": one,
        "b": other,
        "heads": build_compared_runs(one, other),
        "settings": compare_settings(one, other),
        "totals": count_pairs(couples),
        "entries": build_comparison_lines(items[start : start + WINDOW]),
        "shows_all": shows_all,
        "all_url": build_comparison_url(one, other, show="all"),
        "differences_url": build_comparison_url(one, other),
        "earlier_url": build_comparison_window_url(
            one, other, start - WINDOW, shows_all
        )
        if start
        else "",
        "later_url": build_comparison_window_url(one, other, start + WINDOW, shows_all)
        if start + WINDOW < len(items)
        else "",
        "first": start + 1,
        "last": min(start + WINDOW, len(items)),
        "count": len(items),
        "answers": compare_answers(one, other),
    }
    return render_page_or_part(
        request, "runs/compare.html", "runs/_compare_steps.html", context
    )


def parse_compared_ids(query: QueryDict) -> tuple[int | None, int | None]:
    """Return the two ids of the URL; of two `run`, the older one is A."""
    picked = sorted(filter(None, map(parse_whole_number, query.getlist("run")[:2])))
    a, b = (
        parse_whole_number(query.get("a", "")),
        parse_whole_number(query.get("b", "")),
    )
    if picked and a is None and b is None:
        return picked[0], picked[1] if len(picked) > 1 else None
    return a, b


def build_comparison_url(one: Run, other: Run, **more: object) -> str:
    """Return the query of the page."""
    return f"?{urlencode({'a': one.pk, 'b': other.pk, **more})}"


def build_comparison_window_url(
    one: Run, other: Run, start: int, shows_all: bool
) -> str:
    show = {"show": "all"} if shows_all else {}
    return build_comparison_url(one, other, **show, **{"from": max(start, 0)})


def render_comparison_candidates(request: HtmxRequest, run: Run | None) -> HttpResponse:
    visible = Run.objects.visible_to(request.user)
    found = annotate_current_tool(rank_candidates(visible, run)).order_by(
        "-near", "-pk"
    )[:MAX_CANDIDATES]
    context = {"run": run, "rows": build_run_rows(found)}
    return render(request, "runs/compare_with.html", context)


def rank_candidates(runs: QuerySet[Run], run: Run | None) -> QuerySet[Run]:
    """Return forks and parent of `run`, and runs of its agent, ranked."""
    if run is None:
        return runs.annotate(near=Value(0))
    kin = list_related_run_ids(run, runs)
    near = Case(When(pk__in=kin, then=2), When(title=run.title, then=1), default=0)
    newest = runs.filter(agent=run.agent_id).order_by("-pk")[:MAX_SEARCHED_RUNS]
    ids = [*newest.values_list("pk", flat=True), *kin]
    return runs.filter(pk__in=ids).exclude(pk=run.pk).annotate(near=near)


def list_related_run_ids(run: Run, runs: QuerySet[Run]) -> list[int]:
    """Return the ids of parent, forks and other forks of the parent."""
    above = run.forked_from_id or 0
    near = runs.filter(pk=above) | runs.filter(forked_from=run.pk)
    if above:
        near |= runs.filter(forked_from=above)
    return list(near.values_list("pk", flat=True)[:MAX_CANDIDATES])


def build_compared_runs(one: Run, other: Run) -> tuple[ComparedRun, ComparedRun]:
    return (
        ComparedRun("A", one, describe_fork(one), build_run_figures(one, None)),
        ComparedRun("B", other, describe_fork(other), build_run_figures(other, one)),
    )


def build_run_figures(run: Run, base: Run | None) -> tuple[RunFigure, ...]:
    """Return time, rounds, tokens and cost, with the differences from `base`."""
    seconds, rounds = get_shown_seconds(run), run.rounds
    used, cost = run.input_tokens + run.output_tokens, float(run.cost)
    figures = [
        RunFigure(_("Time"), duration(seconds) if seconds else ""),
        RunFigure(_("Rounds"), number(rounds)),
        RunFigure(_("Tokens"), number(used)),
        RunFigure(
            _("Cost"),
            money(cost) if cost or has_model_price(run) else _("no price"),
        ),
    ]
    if base is None:
        return tuple(figures)
    later = seconds - get_shown_seconds(base)
    more = used - base.input_tokens - base.output_tokens
    dearer = round_cost_as_shown(cost) - round_cost_as_shown(float(base.cost))
    changes = [
        format_signed(later, duration(abs(later)), least=0.1),
        format_signed(rounds - base.rounds, number(abs(rounds - base.rounds))),
        format_signed(more, number(abs(more))),
        format_signed(dearer, money(abs(dearer)), least=0.00005),
    ]
    return tuple(
        figure._replace(change=change)
        for figure, change in zip(figures, changes, strict=True)
    )


def round_cost_as_shown(cost: float) -> float:
    """Return a cost rounded as shown, so that differences match the figures."""
    return round(cost, 2 if cost >= 1 else 4)


def has_model_price(run: Run) -> bool:
    """Whether a model of the run has prices; without any the cost is unknown."""
    return bool(run.spec.body.get("prices"))


def format_signed(value: float, words: str, *, least: float = 1) -> str:
    """Write a difference with its sign; empty if there is none."""
    if abs(value) < least:
        return ""
    return f"{'+' if value > 0 else '−'}{words}"


def get_shown_seconds(run: Run) -> float:
    """Return the seconds of a run so far, without waiting for people, as shown.

    They are rounded, so the difference of two runs matches their figures.
    """
    waited = load_human_waits([run.pk]).get(run.pk, 0.0)
    seconds = get_work_seconds(run, waited) or 0.0
    return (
        round(seconds, 1) if seconds < TENTHS_BELOW_SECONDS else float(round(seconds))
    )


def compare_settings(one: Run, other: Run) -> list[SettingDifference]:
    """Return what was set differently, the inputs included."""
    effort = DiffBudget()
    names = one.agent.name, other.agent.name
    found = [SettingDifference(_("Agent"), *names)] if names[0] != names[1] else []
    found += compare_specs(get_final_spec(one), get_final_spec(other), effort)
    inputs = diff_texts(indent_json(one.inputs), indent_json(other.inputs), effort)
    if inputs:
        found.append(SettingDifference(_("Inputs"), "", "", tuple(inputs)))
    return found


def compare_specs(
    mine: AgentSpec, theirs: AgentSpec, effort: DiffBudget
) -> list[SettingDifference]:
    """Return what is set differently; `effort` is shared by the texts of a page."""
    plain = [
        (_("Kind"), mine.kind, theirs.kind),
        (_("Model"), format_model_name(mine), format_model_name(theirs)),
        (
            _("Parameters"),
            format_model_parameters(mine),
            format_model_parameters(theirs),
        ),
        (_("Tools"), format_tool_names(mine), format_tool_names(theirs)),
        (_("Limits"), format_executor_limits(mine), format_executor_limits(theirs)),
    ]
    found = [SettingDifference(label, a, b) for label, a, b in plain if a != b]
    if lines := diff_texts(get_prompt_text(mine), get_prompt_text(theirs), effort):
        found.append(SettingDifference(_("Prompt"), "", "", tuple(lines)))
    return found


def get_final_spec(run: Run) -> AgentSpec:
    resumes = Resume.objects.filter(run=run)
    return get_spec_at_call(run, resumes, number=run.next_number)


def format_model_name(spec: AgentSpec) -> str:
    if not spec.model.provider:
        return _("%(model)s (no provider)") % {"model": spec.model.model}
    values = {"model": spec.model.model, "provider": spec.model.provider}
    return _("%(model)s (provider %(provider)s)") % values


def format_model_parameters(spec: AgentSpec) -> str:
    pairs = sorted(spec.model.parameters.items())
    return ", ".join(f"{key} {value}" for key, value in pairs) or _("none")


def format_tool_names(spec: AgentSpec) -> str:
    """Return the names of the tools, with those that require approval."""
    names = [
        _("%(tool)s (approval required)") % {"tool": tool.name}
        if tool.asks
        else tool.name
        for tool in spec.tools
    ]
    return ", ".join(names) or _("none")


def format_executor_limits(spec: AgentSpec) -> str:
    options, budget = spec.executor, spec.executor.budget
    limits = []
    if (rounds := options.max_iterations) is not None:
        text = ngettext("%(count)s round", "%(count)s rounds", rounds)
        limits.append(text % {"count": number(rounds)})
    if options.max_execution_time is not None:
        limits.append(duration(options.max_execution_time))
    if budget and budget.tokens is not None:
        text = ngettext("%(count)s token", "%(count)s tokens", budget.tokens)
        limits.append(text % {"count": number(budget.tokens)})
    if budget and budget.cost is not None:
        limits.append(money(budget.cost))
    return ", ".join(limits) or _("none")


def get_prompt_text(spec: AgentSpec) -> str:
    return "\n\n".join(templates_of_prompt(get_prompt_of_spec(spec)))


def compare_answers(one: Run, other: Run) -> AnswerComparison:
    """Return both answers, and their difference if there are two."""
    mine, theirs = get_answer_text(one), get_answer_text(other)
    if mine and theirs:
        if mine == theirs:
            return AnswerComparison(
                _("The same"), is_same=True, a=render_markdown(mine)
            )
        lines = diff_texts(mine, theirs, DiffBudget())
        shown = render_markdown(mine), render_markdown(theirs)
        return AnswerComparison(
            _("Different"), a=shown[0], b=shown[1], lines=tuple(lines)
        )
    if not mine and not theirs:
        return AnswerComparison(_("Neither run has an answer"))
    side = "A" if mine else "B"
    return AnswerComparison(
        _("Only %(side)s has an answer") % {"side": side},
        a=render_markdown(mine) if mine else "",
        b=render_markdown(theirs) if theirs else "",
    )


def get_answer_text(run: Run) -> str:
    """Return the answer as text; empty if there is none."""
    if run.status != Run.Status.SUCCEEDED or run.output is None:
        return ""
    return run.output if isinstance(run.output, str) else indent_json(run.output)
