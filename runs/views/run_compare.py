"""Two runs side by side: figures, settings, steps, answers."""

from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.db.models import Case, QuerySet, Value, When
from django.http import HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.utils.safestring import SafeString
from django.views.decorators.http import require_GET

from runs.engine.kinds.registry import KINDS
from runs.engine.prompts import templates_of
from runs.engine.types import AgentSpec
from runs.htmx import HtmxRequest, page_or_part
from runs.models import Resume, Run
from runs.services.fork_run import spec_then
from runs.templatetags.look import duration
from runs.views.compared_rows import (
    WINDOW,
    couples_of,
    entries_of,
    folded,
    totals_of,
)
from runs.views.list_rows import rows_of, with_doing
from runs.views.markdown import render_markdown
from runs.views.run_detail import indented
from runs.views.run_family import words_of_fork
from runs.views.run_state import money
from runs.views.text_difference import Effort, Line, difference
from runs.whole_number import whole_number

FINE_SECONDS = 10
"""Below which a time is shown in tenths of a second."""
OFFERED = 20
"""Runs that are offered to compare with."""
LOOKED_THROUGH = 200
"""The newest runs of the agent, among which those with the same question come first."""


class Figure(NamedTuple):
    """A number of one run, and by how much it differs from the other's."""

    label: str
    value: str
    change: str = ""


@dataclass(frozen=True)
class Head:
    """One of the two runs."""

    side: str
    run: Run
    words: str
    figures: tuple[Figure, ...]


class Setting(NamedTuple):
    """What was set differently."""

    label: str
    a: str
    b: str
    lines: tuple[Line, ...] = ()


@dataclass(frozen=True)
class Answers:
    """Both ends."""

    words: str
    a: SafeString | str = ""
    b: SafeString | str = ""
    lines: tuple[Line, ...] = ()


@require_GET
def compare(request: HtmxRequest) -> HttpResponse:
    """Compare `?a=` with `?b=`, or two `?run=`; with one, offer others."""
    first, second = chosen(request.GET)
    visible = Run.objects.visible_to(request.user).select_related(
        "agent", "version", "spec", "owner"
    )
    one = get_object_or_404(visible, pk=first) if first else None
    other = get_object_or_404(visible, pk=second) if second else None
    if one is None or other is None:
        return offer(request, one or other)
    couples = couples_of(one, other)
    shows_all = request.GET.get("show") == "all"
    items = list(couples) if shows_all else folded(couples)
    start = min(whole_number(request.GET.get("from", "")) or 0, max(len(items) - 1, 0))
    context: dict[str, Any] = {
        "a": one,
        "b": other,
        "heads": heads_of(one, other),
        "settings": settings_between(one, other),
        "totals": totals_of(couples),
        "entries": entries_of(items[start : start + WINDOW]),
        "shows_all": shows_all,
        "all_url": address(one, other, show="all"),
        "differences_url": address(one, other),
        "earlier_url": window(one, other, start - WINDOW, shows_all) if start else "",
        "later_url": window(one, other, start + WINDOW, shows_all)
        if start + WINDOW < len(items)
        else "",
        "first": start + 1,
        "last": min(start + WINDOW, len(items)),
        "count": len(items),
        "answers": answers_of(one, other),
    }
    return page_or_part(
        request, "runs/compare.html", "runs/_compare_steps.html", context
    )


def chosen(query: QueryDict) -> tuple[int | None, int | None]:
    """Return the two ids of the address; of two `run`, the older one is A."""
    picked = sorted(filter(None, map(whole_number, query.getlist("run")[:2])))
    a, b = whole_number(query.get("a", "")), whole_number(query.get("b", ""))
    if picked and a is None and b is None:
        return picked[0], picked[1] if len(picked) > 1 else None
    return a, b


def address(one: Run, other: Run, **more: object) -> str:
    """Return the query of the page."""
    return f"?{urlencode({'a': one.pk, 'b': other.pk, **more})}"


def window(one: Run, other: Run, start: int, shows_all: bool) -> str:
    """Return the address of the window that begins at `start`."""
    show = {"show": "all"} if shows_all else {}
    return address(one, other, **show, **{"from": max(start, 0)})


def offer(request: HtmxRequest, run: Run | None) -> HttpResponse:
    """Show runs to compare `run` with."""
    visible = Run.objects.visible_to(request.user)
    found = with_doing(likely(visible, run)).order_by("-near", "-pk")[:OFFERED]
    context = {"run": run, "rows": rows_of(found)}
    return render(request, "runs/compare_with.html", context)


def likely(runs: QuerySet[Run], run: Run | None) -> QuerySet[Run]:
    """Return relatives of `run`, and runs with its question or of its agent."""
    if run is None:
        return runs.annotate(near=Value(0))
    kin = kin_of(run, runs)
    near = Case(When(pk__in=kin, then=2), When(title=run.title, then=1), default=0)
    newest = runs.filter(agent=run.agent_id).order_by("-pk")[:LOOKED_THROUGH]
    ids = [*newest.values_list("pk", flat=True), *kin]
    return runs.filter(pk__in=ids).exclude(pk=run.pk).annotate(near=near)


def kin_of(run: Run, runs: QuerySet[Run]) -> list[int]:
    """Return the ids of parent, forks and other forks of the parent."""
    above = run.forked_from_id or 0
    near = runs.filter(pk=above) | runs.filter(forked_from=run.pk)
    if above:
        near |= runs.filter(forked_from=above)
    return list(near.values_list("pk", flat=True)[:OFFERED])


def heads_of(one: Run, other: Run) -> tuple[Head, Head]:
    """Return both runs with their figures."""
    return (
        Head("A", one, words_of_fork(one), figures_of(one, None)),
        Head("B", other, words_of_fork(other), figures_of(other, one)),
    )


def figures_of(run: Run, base: Run | None) -> tuple[Figure, ...]:
    """Return time, rounds, tokens and cost; against `base` the differences, too."""
    seconds, rounds = seconds_of(run), run.rounds
    used, cost = run.input_tokens + run.output_tokens, float(run.cost)
    figures = [
        Figure("Time", duration(seconds) if seconds else ""),
        Figure("Rounds", str(rounds)),
        Figure("Tokens", f"{used:,}"),
        Figure("Cost", money(cost) if cost or has_price(run) else "no price"),
    ]
    if base is None:
        return tuple(figures)
    later = seconds - seconds_of(base)
    more = used - base.input_tokens - base.output_tokens
    dearer = as_read(cost) - as_read(float(base.cost))
    changes = [
        signed(later, duration(abs(later)), least=0.1),
        signed(rounds - base.rounds, str(abs(rounds - base.rounds))),
        signed(more, f"{abs(more):,}"),
        signed(dearer, money(abs(dearer)), least=0.00005),
    ]
    return tuple(
        figure._replace(change=change)
        for figure, change in zip(figures, changes, strict=True)
    )


def as_read(cost: float) -> float:
    """Return a cost as it is shown, so that a difference is that of what one reads."""
    return round(cost, 2 if cost >= 1 else 4)


def has_price(run: Run) -> bool:
    """Whether a model of the run has prices; without any, nothing is known of cost."""
    return bool(run.spec.body.get("prices"))


def signed(value: float, words: str, *, least: float = 1) -> str:
    """Write a difference with its sign; nothing where there is none."""
    if abs(value) < least:
        return ""
    return f"{'+' if value > 0 else '−'}{words}"


def seconds_of(run: Run) -> float:
    """Return how long a run took, or has taken so far, as exactly as it is shown.

    So the difference of two is that of the figures one reads.
    """
    if run.started_at is None:
        return 0.0
    seconds = ((run.ended_at or timezone.now()) - run.started_at).total_seconds()
    return round(seconds, 1) if seconds < FINE_SECONDS else float(round(seconds))


def settings_between(one: Run, other: Run) -> list[Setting]:
    """Return what was set differently, the inputs included."""
    effort = Effort()
    mine, theirs = spec_at_last(one), spec_at_last(other)
    plain = [
        ("Agent", one.agent.name, other.agent.name),
        ("Kind", mine.kind, theirs.kind),
        ("Model", model_words(mine), model_words(theirs)),
        ("Parameters", parameters(mine), parameters(theirs)),
        ("Tools", tool_words(mine), tool_words(theirs)),
        ("Limits", limit_words(mine), limit_words(theirs)),
    ]
    found = [Setting(label, a, b) for label, a, b in plain if a != b]
    texts = [
        ("Prompt", prompt_text(mine), prompt_text(theirs)),
        ("Inputs", indented(one.inputs), indented(other.inputs)),
    ]
    for label, a, b in texts:
        if lines := difference(a, b, effort):
            found.append(Setting(label, "", "", tuple(lines)))
    return found


def spec_at_last(run: Run) -> AgentSpec:
    """Return the spec with the limits that resumes gave."""
    resumes = Resume.objects.filter(run=run)
    return spec_then(run, resumes, number=run.next_number)


def model_words(spec: AgentSpec) -> str:
    """Name model and provider."""
    return f"{spec.model.model} of {spec.model.provider or 'no provider'}"


def parameters(spec: AgentSpec) -> str:
    """Write the parameters in one line."""
    pairs = sorted(spec.model.parameters.items())
    return ", ".join(f"{key} {value}" for key, value in pairs) or "none"


def tool_words(spec: AgentSpec) -> str:
    """Name the tools, and which of them ask."""
    names = [f"{tool.name} (asks)" if tool.asks else tool.name for tool in spec.tools]
    return ", ".join(names) or "none"


def limit_words(spec: AgentSpec) -> str:
    """Write the limits that are set."""
    options, budget = spec.executor, spec.executor.budget
    limits = [
        (options.max_iterations, "rounds" if options.max_iterations != 1 else "round"),
        (options.max_execution_time, "s"),
        (budget.tokens if budget else None, "tokens"),
        (budget.cost if budget else None, "$"),
    ]
    return (
        ", ".join(f"{limit:g} {unit}" for limit, unit in limits if limit is not None)
        or "none"
    )


def prompt_text(spec: AgentSpec) -> str:
    """Return the whole template as one text."""
    return "\n\n".join(templates_of(spec.prompt or KINDS[spec.kind].prompt))


def answers_of(one: Run, other: Run) -> Answers:
    """Return both answers, and the difference where there are two."""
    mine, theirs = answer_text(one), answer_text(other)
    if mine and theirs:
        if mine == theirs:
            return Answers("the same", a=render_markdown(mine))
        lines = difference(mine, theirs, Effort())
        shown = render_markdown(mine), render_markdown(theirs)
        return Answers("they differ", *shown, tuple(lines))
    if not mine and not theirs:
        return Answers("none has one")
    side = "A" if mine else "B"
    return Answers(
        f"only {side} has one",
        render_markdown(mine) if mine else "",
        render_markdown(theirs) if theirs else "",
    )


def answer_text(run: Run) -> str:
    """Return the answer as text; empty where there is none."""
    if run.status != Run.Status.SUCCEEDED or run.output is None:
        return ""
    return run.output if isinstance(run.output, str) else indented(run.output)
