"""A run as a document for others: its steps in order, secrets masked, nothing to click.

The shared page and the exported file are made of it. It names no person, no other run
and nothing of the agent but, in a file of one's own, its name.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db.models import F
from django.utils.safestring import SafeString

from runs.models import AgentStep, ModelCall, Run
from runs.services.mask_secrets import Mask
from runs.services.start_run import title_of
from runs.templatetags.look import duration
from runs.views.markdown import pretty, render_json, render_markdown
from runs.views.plain_words import words_of_input, words_of_reply, words_of_result
from runs.views.run_state import limits_of, money, stop_words

WINDOW = 100
"""Rows of a page; a file has all of them."""
SHOWN = 40_000
"""Characters of one text."""
EDGE = 4_000
"""Characters looked at beyond, so that no half of a secret stays."""
BATCH = 500


class Section(NamedTuple):
    """A labelled text of a row."""

    label: str
    html: SafeString
    is_prose: bool = False
    has_failed: bool = False


@dataclass(frozen=True)
class DocumentRow:
    """One step."""

    number: int
    icon: str
    name: str
    words: str
    figures: str
    tags: tuple[str, ...]
    sections: tuple[Section, ...]
    has_failed: bool = False


@dataclass(frozen=True)
class Document:
    """A run, or a window of it."""

    run: Run
    title: str
    facts: tuple[tuple[str, str], ...]
    inputs: tuple[Section, ...]
    answer: SafeString | str
    ending: str
    error: str
    rows: tuple[DocumentRow, ...]
    total: int
    first: int = 1

    @property
    def later(self) -> int | None:
        """The row after which there are more."""
        last = self.first + len(self.rows) - 1
        return last if last < self.total else None


def document_of(
    run: Run, *, after: int | None = None, names_agent: bool = False
) -> Document:
    """Return the run as a document; with `after`, one window of its rows."""
    mask = Mask(run)
    rows = rows_of(run, mask, after=after)
    return Document(
        run=run,
        title=title_of(mask.json(run.inputs)) if run.inputs else mask.text(run.title),
        facts=tuple(facts_of(run, names_agent=names_agent)),
        inputs=tuple(
            Section(name, pretty(masked(str(text), mask)))
            for name, text in run.inputs.items()
        ),
        answer=answer_html(run, mask),
        ending=ending_of(run),
        error=mask.text(run.error_message),
        rows=tuple(rows),
        total=run.next_number + run.next_index,
        first=(after or 0) + 1,
    )


def facts_of(run: Run, *, names_agent: bool) -> Iterator[tuple[str, str]]:
    """Yield what the head of the document says."""
    if names_agent:
        version = f"version {run.version.number}" if run.version else "draft"
        yield "Agent", f"{run.agent.name}, {version}"
    if run.started_at is not None:
        yield "Started", f"{run.started_at:%d %b %Y %H:%M} UTC"
    if run.started_at is not None and run.ended_at is not None:
        yield "Time in all", duration(run.ended_at - run.started_at)
    yield "Rounds", str(run.rounds)
    yield "Tokens", f"{run.input_tokens + run.output_tokens:,}"
    if run.cost:
        yield "Cost", money(float(run.cost))


def answer_html(run: Run, mask: Mask) -> SafeString | str:
    """Return the answer as it reads best; empty where there is none."""
    if run.answer is None:
        return ""
    if isinstance(run.answer, str):
        return render_markdown(mask.text(run.answer))
    return render_json(mask.json(run.answer))


def ending_of(run: Run) -> str:
    """Say why a stopped run has no answer; empty where it has one."""
    if run.status != Run.Status.STOPPED or run.answer is not None:
        return ""
    return (
        f"It reached {stop_words(run, limits_of(run))} before the model had answered."
    )


def rows_of(run: Run, mask: Mask, *, after: int | None) -> list[DocumentRow]:
    """Return the rows in order; a row's number follows from its own record."""
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
    found = [call_row(call, mask) for call in calls.iterator(BATCH)]
    found += [step_row(step, mask) for step in steps.iterator(BATCH)]
    return sorted(found, key=lambda row: row.number)


def number_of(row: ModelCall | AgentStep) -> int:
    """Return the row's place, from 1."""
    if isinstance(row, ModelCall):
        return row.number + row.at_index + 1
    return row.index + row.model_call.number + 2


def call_row(call: ModelCall, mask: Mask) -> DocumentRow:
    """Return a model call: what it said, what it asked for."""
    text = masked(call.reply.get("text") or "", mask)
    reasoning = masked(call.reply.get("reasoning") or "", mask)
    sections = []
    if text:
        sections.append(Section("Reply", render_markdown(text), is_prose=True))
    if reasoning:
        sections.append(Section("Thinking", render_markdown(reasoning), is_prose=True))
    names = [one.get("name", "") for one in call.reply.get("tool_calls") or []]
    if names:
        sections.append(Section("Asks for", pretty(", ".join(map(str, names)))))
    return DocumentRow(
        number=number_of(call),
        icon="model",
        name="",
        words=words_of_reply({**call.reply, "text": text}, purpose=call.purpose),
        figures="" if call.is_copied else ", ".join(figures_of(call)),
        tags=tags_of(call),
        sections=tuple(sections),
    )


def figures_of(call: ModelCall) -> Iterator[str]:
    """Yield what a call took here; one that is reused took nothing."""
    yield duration(call.elapsed)
    if used := call.input_tokens + call.output_tokens:
        yield f"{used:,} tokens"
    if call.cost:
        yield money(float(call.cost))


def step_row(step: AgentStep, mask: Mask) -> DocumentRow:
    """Return a tool call with its arguments and its result."""
    asked = mask.json(step.tool_input)
    told = masked(step.observation, mask)
    sections = [Section("Arguments", as_code(asked))]
    if step.is_answered or told:
        label = "Error" if step.has_failed else "Result"
        sections.append(Section(label, pretty(told), has_failed=step.has_failed))
    is_error = step.tool == "_Exception"
    parts = ["" if is_error else words_of_input(asked), words_of_result(told)]
    return DocumentRow(
        number=number_of(step),
        icon="alert" if step.has_failed else "tool",
        name="" if is_error else step.tool,
        words=" → ".join(filter(None, parts)),
        figures="" if step.is_copied else duration(step.duration),
        tags=(*tags_of(step), *([step.get_status_display()] if is_odd(step) else [])),
        sections=tuple(sections),
        has_failed=step.has_failed,
    )


def masked(text: str, mask: Mask) -> str:
    """Return the text without secrets, cut only after a secret at the edge is gone."""
    shown = mask.either(text[: SHOWN + EDGE])[:SHOWN]
    more = len(text) - SHOWN
    return f"{shown}\n… {more:,} more characters" if more > 0 else shown


def is_odd(step: AgentStep) -> bool:
    """Whether the state is worth a word."""
    return step.status not in (AgentStep.Status.SUCCEEDED, AgentStep.Status.FAILED)


def tags_of(row: ModelCall | AgentStep) -> tuple[str, ...]:
    """Say that a row was reused, or written by a person."""
    if row.is_edited:
        return ("edited by a person",)
    return ("reused",) if row.is_copied else ()


def as_code(value: Any) -> SafeString:
    """Return arguments as they read best."""
    return pretty(value) if isinstance(value, str) else render_json(value)
