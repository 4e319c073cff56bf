"""A run as a read-only document with masked secrets, for shared pages and exports.

It names no person, no other run, and of the agent only the name in one's own exports.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

from django.db.models import F
from django.http import QueryDict
from django.utils.html import escape
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runs.models import AgentStep, ModelCall, Run
from runs.services.runs.limits import get_current_limits
from runs.services.runs.mask_secrets import SecretMask
from runs.services.runs.start import build_run_title
from runs.ui.format import duration, format_date_time, money, number
from runs.ui.markdown import (
    MAX_SECONDS_PER_PAGE,
    SHORT_TEXT,
    PageBudget,
    render_json,
    render_json_or_text,
    render_markdown,
    show_as_it_is,
)
from runs.ui.summaries import summarize_input, summarize_reply, summarize_result
from runs.views.run.rows import ANSWERED_BY_TAGS
from runs.views.run.state import describe_limit_reached
from runs.views.run.step_detail import get_step_status_label
from runs.whole_number import parse_whole_number

WINDOW = 100
"""Rows of a shared page; a file has all of them."""
MAX_TEXT_CHARACTERS = 40_000
"""Characters of one text."""
MASK_MARGIN_CHARACTERS = 4_000
"""Characters read beyond the cut, so that no part of a secret remains."""
BATCH = 500


class DocumentSection(NamedTuple):
    """A labeled text of a row."""

    label: str
    html: SafeString
    is_prose: bool = False
    has_failed: bool = False


@dataclass(frozen=True)
class DocumentRow:
    number: int
    icon: str
    name: str
    words: str
    figures: str
    tags: tuple[str, ...]
    sections: tuple[DocumentSection, ...]
    has_failed: bool = False


@dataclass(frozen=True)
class RunDocument:
    """A run, or a window of it."""

    run: Run
    title: str
    facts: tuple[tuple[str, str], ...]
    inputs: tuple[DocumentSection, ...]
    answer: SafeString | str
    ending: str
    error: str
    rows: tuple[DocumentRow, ...]
    total: int
    first: int = 1

    @property
    def later(self) -> int | None:
        """The row after which there are more; None at the end."""
        last = self.first + len(self.rows) - 1
        return last if last < self.total else None


def build_document_page(run: Run, query: QueryDict) -> dict[str, Any]:
    """Return one window of the run, as `?after=` says, and where the one before is."""
    after = parse_whole_number(query.get("after", "")) or 0
    return {
        "document": build_run_document(run, after=after),
        "before": max(after - WINDOW, 0),
    }


def build_run_document(
    run: Run, *, after: int | None = None, names_agent: bool = False
) -> RunDocument:
    """Return the run as a document; with `after`, one window of its rows.

    Only a window, which anybody may ask for again and again, has a limit of time.
    """
    mask = SecretMask(run)
    budget = PageBudget(inf if after is None else MAX_SECONDS_PER_PAGE)
    answer = render_document_answer(run, mask)
    rows = build_document_rows(run, mask, budget, after=after)
    return RunDocument(
        run=run,
        title=build_run_title(mask.json(run.inputs))
        if run.inputs
        else mask.text(run.title),
        facts=tuple(iter_document_facts(run, names_agent=names_agent)),
        inputs=tuple(
            DocumentSection(
                name, render_json_or_text(mask_and_truncate(str(text), mask, budget))
            )
            for name, text in run.inputs.items()
        ),
        answer=answer,
        ending=describe_missing_answer(run),
        error=mask.text(run.error_message),
        rows=tuple(rows),
        total=run.next_number + run.next_index,
        first=(after or 0) + 1,
    )


def iter_document_facts(run: Run, *, names_agent: bool) -> Iterator[tuple[str, str]]:
    if names_agent:
        text = (
            _("%(agent)s, version %(number)s") if run.version else _("%(agent)s, draft")
        )
        version = run.version.number if run.version else None
        yield _("Agent"), text % {"agent": run.agent.name, "number": version}
    if run.started_at is not None:
        yield _("Started"), f"{format_date_time(run.started_at)} UTC"
    if run.started_at is not None and run.ended_at is not None:
        yield _("Total time"), duration(run.ended_at - run.started_at)
    if run.tool_mode:
        yield _("Tool calls"), run.get_tool_mode_display()
    yield _("Rounds"), number(run.rounds)
    yield _("Tokens"), number(run.input_tokens + run.output_tokens)
    if run.cost:
        yield _("Cost"), money(float(run.cost))


def render_document_answer(run: Run, mask: SecretMask) -> SafeString | str:
    """Return the answer as HTML; empty if there is none."""
    if run.answer is None:
        return ""
    if isinstance(run.answer, str):
        return render_markdown(mask.text(run.answer))
    return render_json(mask.json(run.answer))


def describe_missing_answer(run: Run) -> str:
    """Return why a run that reached a limit has no answer, if so."""
    if run.status != Run.Status.LIMIT_REACHED or run.answer is not None:
        return ""
    limit = describe_limit_reached(run, get_current_limits(run))
    return _("No answer. %(reason)s.") % {"reason": limit}


def build_document_rows(
    run: Run, mask: SecretMask, budget: PageBudget, *, after: int | None
) -> list[DocumentRow]:
    """Return the rows, ordered by number."""
    calls = ModelCall.objects.filter(run=run).annotate(
        row=F("number") + F("at_index") + 1
    )
    steps = AgentStep.objects.filter(run=run).annotate(
        row=F("index") + F("model_call__number") + 2
    )
    if after is not None:
        window = {"row__gt": after, "row__lte": after + WINDOW}
        calls, steps = calls.filter(**window), steps.filter(**window)
    steps = steps.select_related("model_call").defer("value", "model_call__reply")
    found = [
        build_document_call_row(call, mask, budget) for call in calls.iterator(BATCH)
    ]
    found += [
        build_document_step_row(step, mask, budget) for step in steps.iterator(BATCH)
    ]
    return sorted(found, key=lambda row: row.number)


def get_document_row_number(row: ModelCall | AgentStep) -> int:
    """Return the row's place, from 1."""
    if isinstance(row, ModelCall):
        return row.number + row.at_index + 1
    return row.index + row.model_call.number + 2


def build_document_call_row(
    call: ModelCall, mask: SecretMask, budget: PageBudget
) -> DocumentRow:
    """Return a model call: its text and the calls it requested."""
    text = mask_and_truncate(call.reply.get("text") or "", mask, budget)
    reasoning = mask_and_truncate(call.reply.get("reasoning") or "", mask, budget)
    sections = []
    if text:
        html = render_prose(text, budget)
        sections.append(DocumentSection(_("Reply"), html, is_prose=True))
    if reasoning:
        html = render_prose(reasoning, budget)
        sections.append(DocumentSection(_("Reasoning"), html, is_prose=True))
    names = [one.get("name", "") for one in call.reply.get("tool_calls") or []]
    if names:
        sections.append(
            DocumentSection(
                _("Tool calls"), render_json_or_text(", ".join(map(str, names)))
            )
        )
    return DocumentRow(
        number=get_document_row_number(call),
        icon="model",
        name="",
        words=summarize_reply({**call.reply, "text": text}, purpose=call.purpose),
        figures="" if call.is_copied else ", ".join(iter_call_figures(call)),
        tags=get_document_tags(call),
        sections=tuple(sections),
    )


def iter_call_figures(call: ModelCall) -> Iterator[str]:
    """Yield time, tokens and cost of a call."""
    yield duration(call.elapsed)
    if used := call.input_tokens + call.output_tokens:
        text = ngettext("%(count)s token", "%(count)s tokens", used)
        yield text % {"count": number(used)}
    if call.cost:
        yield money(float(call.cost))


def build_document_step_row(
    step: AgentStep, mask: SecretMask, budget: PageBudget
) -> DocumentRow:
    asked = mask.json(step.tool_input)
    message = mask_and_truncate(step.observation, mask, budget)
    sections = [
        DocumentSection(_("Arguments"), render_document_arguments(asked, budget))
    ]
    if step.is_answered or message:
        label = _("Error") if step.has_failed else _("Result")
        html = render_code(message, budget)
        sections.append(DocumentSection(label, html, has_failed=step.has_failed))
    is_error = step.tool == "_Exception"
    parts = ["" if is_error else summarize_input(asked), summarize_result(message)]
    return DocumentRow(
        number=get_document_row_number(step),
        icon="alert" if step.has_failed else "tool",
        name="" if is_error else step.tool,
        words=" → ".join(filter(None, parts)),
        figures="" if step.is_copied or step.answered_by else duration(step.duration),
        tags=(
            *get_document_tags(step),
            *filter(None, [str(ANSWERED_BY_TAGS.get(step.answered_by, ""))]),
            *([get_step_status_label(step)] if needs_status_label(step) else []),
        ),
        sections=tuple(sections),
        has_failed=step.has_failed,
    )


def mask_and_truncate(text: str, mask: SecretMask, budget: PageBudget) -> str:
    """Return the text with masked secrets, cut after masking.

    Once the time of the page is over, only the beginning of each text is shown.
    """
    limit = MAX_TEXT_CHARACTERS if budget.seconds > 0 else SHORT_TEXT
    with budget.count_time():
        masked = mask.mask_text_or_json(text[: limit + MASK_MARGIN_CHARACTERS])
    shown = masked[:limit]
    more = len(text) - limit
    if more <= 0:
        return shown
    text = ngettext("%(count)s more character", "%(count)s more characters", more)
    return f"{shown}\n… {text % {'count': number(more)}}"


def needs_status_label(step: AgentStep) -> bool:
    return step.status not in (AgentStep.Status.SUCCEEDED, AgentStep.Status.FAILED)


def get_document_tags(row: ModelCall | AgentStep) -> tuple[str, ...]:
    """Return whether a row was reused, or edited by a person."""
    if row.is_edited:
        return (_("edited by a person"),)
    return (_("reused"),) if row.is_copied else ()


def render_document_arguments(value: Any, budget: PageBudget) -> SafeString:
    is_text = isinstance(value, str)
    return render_code(
        value if is_text else json.dumps(value, ensure_ascii=False), budget
    )


def render_prose(text: str, budget: PageBudget) -> SafeString:
    return budget.render(render_markdown, text, otherwise=show_as_it_is)


def render_code(text: str, budget: PageBudget) -> SafeString:
    return budget.render(render_json_or_text, text, otherwise=escape)
