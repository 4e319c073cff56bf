"""The right pane of the run page: the selected step in its tabs, or the answer."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from django.db.models import F
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from runs.engine.types import TRUNCATED
from runs.models import AgentStep, Decision, ModelAttempt, ModelCall, Run, StepMedia
from runs.services.runs.rebuild_prompt import RebuiltPrompt, rebuild_next_prompt
from runs.services.telemetry.sent_prompt import load_sent_prompt
from runs.store.history import is_discarded_reply
from runs.store.partial_texts import load_partial_texts
from runs.ui.format import duration, format_number
from runs.ui.format import number as format_count
from runs.ui.markdown import render_json, render_json_or_text, render_markdown
from runs.ui.status_badge import status as status_tag
from runs.views.run.rows import CUT_OFF_CODES, get_current_progress, get_next_row_number
from runs.views.run.state import load_open_tools
from tools.models import Tool

MAX_SHOWN_CHARACTERS = 20_000
"""Characters of a result on a page; the download has all of them."""

ASKING_STATUSES = (AgentStep.Status.AWAITING_APPROVAL, AgentStep.Status.UNKNOWN)

SUPERSEDED_NOTE = gettext_lazy("The run was resumed here with a new model call.")

ANSWERED_BY_FACTS = {
    "recording": (
        gettext_lazy("Replayed"),
        gettext_lazy("Answered from the recording of another run. Nothing was sent."),
    ),
    "other_arguments": (
        gettext_lazy("Replayed"),
        gettext_lazy(
            "Answered from the recording of a call with other arguments. Nothing was "
            "sent."
        ),
    ),
    "held_back": (
        gettext_lazy("Held back"),
        gettext_lazy("Not sent, because this run only tries things out."),
    ),
    "no_recording": (
        gettext_lazy("Not recorded"),
        gettext_lazy("Not sent, because there is no recording of this call."),
    ),
}
"""Label and sentence for what has answered a call that was not made."""

ACTION_STATUSES = {
    "planned": ("queued", gettext_lazy("Planned")),
    "started": ("running", gettext_lazy("Running")),
    "awaiting_approval": ("awaiting_approval", gettext_lazy("Awaiting approval")),
    "succeeded": ("succeeded", gettext_lazy("Succeeded")),
    "failed": ("failed", gettext_lazy("Failed")),
    "rejected": ("canceled", gettext_lazy("Rejected")),
    "unknown": ("awaiting_decision", gettext_lazy("Unknown outcome")),
    "skipped": ("canceled", gettext_lazy("Skipped")),
    "canceled": ("canceled", gettext_lazy("Canceled")),
}


class Fact(NamedTuple):
    label: str
    text: str


class Tab(NamedTuple):
    name: str
    word: str


class RequestedCall(NamedTuple):
    tool: str
    number: int
    input: SafeString
    status: SafeString


class ShownMedia(NamedTuple):
    """An image or sound of a result."""

    url: str
    is_image: bool
    label: str


@dataclass(frozen=True)
class StepText:
    """Input and result of a tool call as HTML."""

    input: SafeString
    observation: SafeString
    has_failed: bool
    has_result: bool
    words: str
    size: str = ""
    cut: str = ""
    whole_url: str = ""
    media: tuple[ShownMedia, ...] = ()


@dataclass(frozen=True)
class ReadableTab:
    """What the Readable tab shows of one row."""

    number: int
    facts: tuple[Fact, ...] = ()
    thought: SafeString | str = ""
    reasoning: SafeString | str = ""
    requested_calls: tuple[RequestedCall, ...] = ()
    actions_title: str = ""
    step: StepText | None = None
    child: Run | None = None
    """The run of the called agent."""
    answer: SafeString | str = ""
    """Its answer, shown in place of the result."""
    is_truncated: bool = False
    """Whether the token limit cut off the reply."""


@dataclass(frozen=True)
class RowRecord:
    """A row of the run: a call, one of its steps, or failed attempts alone."""

    number: int
    call: ModelCall | None = None
    step: AgentStep | None = None
    attempts: list[ModelAttempt] = field(default_factory=list)
    is_asking: bool = False
    """Whether it is the current call, which may still get a reply."""

    @property
    def title(self) -> str:
        values = {"number": self.number}
        if self.step is not None:
            return _("Step %(number)s · %(tool)s") % {**values, "tool": self.step.tool}
        if self.call is not None:
            return _("Step %(number)s · model call") % values
        if self.is_asking:
            return _("Step %(number)s · model call, in progress") % values
        if self.is_cut_off:
            return _("Step %(number)s · model call, interrupted") % values
        return _("Step %(number)s · model call, failed") % values

    @property
    def is_cut_off(self) -> bool:
        """Whether a person or a limit ended it with the run."""
        return bool(self.attempts) and self.attempts[-1].code in CUT_OFF_CODES

    @property
    def icon(self) -> str:
        if self.call is None and not self.is_asking:
            return "stop" if self.is_cut_off else "alert"
        return "tool" if self.step is not None else "model"

    @property
    def tabs(self) -> list[Tab]:
        tabs = []
        if self.call is not None:
            tabs = [
                Tab("readable", _("Readable")),
                Tab("prompt", _("Prompt")),
                Tab("request", _("Raw request")),
                Tab("response", _("Raw response")),
            ]
        if self.step is not None:
            tabs.append(Tab("tool", _("Tool")))
        if self.attempts:
            attempts = _("Attempts (%(count)s)") % {"count": len(self.attempts)}
            tabs.append(Tab("attempts", attempts))
        if self.call is None:
            tabs.append(Tab("prompt", _("Prompt")))
            tabs.append(Tab("request", _("Raw request")))
        return tabs


def find_row_record(run: Run, number: int) -> RowRecord | None:
    """Return the row `number` of `run`; None if it does not exist (yet)."""
    calls = ModelCall.objects.filter(run=run)
    call = (
        calls.annotate(row=F("number") + F("at_index") + 1).filter(row=number).first()
    )
    if call is not None:
        return RowRecord(number, call, attempts=list_model_attempts(run, call.number))
    steps = AgentStep.objects.filter(run=run).select_related("model_call")
    step = (
        steps.annotate(row=F("index") + F("model_call__number") + 2)
        .filter(row=number)
        .first()
    )
    if step is not None:
        return RowRecord(number, step.model_call, step)
    if number != get_next_row_number(run):
        return None
    attempts = list_model_attempts(run, run.next_number)
    is_asking = run.status == Run.Status.RUNNING and not load_open_tools([run.pk])
    is_asking = is_asking or (not run.is_over and bool(attempts))
    if not is_asking and not attempts:
        return None
    return RowRecord(number, attempts=attempts, is_asking=is_asking)


def find_newest_record(run: Run) -> RowRecord | None:
    """Return the row that awaits a person, else the latest row; None without rows."""
    call = ModelCall.objects.filter(run=run).order_by("-number").first()
    if call is None:
        return None
    steps = AgentStep.objects.filter(model_call=call)
    step = steps.filter(status__in=ASKING_STATUSES).order_by("index").first()
    step = step or steps.exclude(started_at=None).order_by("-index").first()
    if step is not None:
        return RowRecord(step.index + call.number + 2, call, step)
    return RowRecord(call.number + call.at_index + 1, call)


def list_model_attempts(run: Run, number: int) -> list[ModelAttempt]:
    return list(ModelAttempt.objects.filter(run=run, number=number))


def build_readable_tab(run: Run, place: RowRecord) -> ReadableTab:
    if place.step is not None:
        return build_readable_step(run, place.step, place.number)
    call = place.call
    if call is None:
        return ReadableTab(
            place.number, (Fact(_("Error"), place.attempts[-1].message),)
        )
    text, reasoning = call.reply.get("text", ""), call.reply.get("reasoning", "")
    actions = list_requested_calls(call)
    requested = ngettext(
        "Requested %(count)s tool call", "Requested %(count)s tool calls", len(actions)
    )
    return ReadableTab(
        place.number,
        facts=tuple(list_call_facts(call)),
        thought=render_markdown(text) if text else "",
        reasoning=render_markdown(reasoning) if reasoning else "",
        requested_calls=tuple(actions),
        actions_title=requested % {"count": len(actions)},
        is_truncated=call.reply.get("finish_reason") == TRUNCATED,
    )


def build_readable_step(run: Run, step: AgentStep, number: int) -> ReadableTab:
    """Return the tab of a call; for a called agent its run and its answer."""
    chosen = ReadableTab(
        number,
        facts=tuple(list_step_facts(step)),
        thought=render_markdown(step.log) if step.log else "",
        step=build_step_text(run, step, number),
        child=find_called_run(step),
    )
    if chosen.child is None:
        return chosen
    has_answer = step.status == AgentStep.Status.SUCCEEDED
    return replace(
        chosen,
        facts=(),
        answer=render_markdown(step.observation[:MAX_SHOWN_CHARACTERS])
        if has_answer
        else "",
    )


def find_called_run(step: AgentStep) -> Run | None:
    if step.tool_ref_id is not None:
        return None
    runs = Run.objects.select_related("agent", "version")
    return runs.filter(parent_step=step).first()


def list_call_facts(call: ModelCall) -> list[Fact]:
    """Return model, time and tokens of a call."""
    settings = call.sent_settings
    model = call.model or settings.get("model", "")
    provider = settings.get("provider", "")
    parameters = ", ".join(
        f"{key} {value}" for key, value in (settings.get("parameters") or {}).items()
    )
    if provider:
        values = {"model": model, "provider": provider}
        model = _("%(model)s (provider %(provider)s)") % values
    facts = [Fact(_("Model"), ", ".join(filter(None, [model, parameters])))]
    facts += list_reuse_facts(call)
    if is_discarded_reply(call, list(call.run.resumes.all())):
        facts.append(Fact(_("Superseded"), str(SUPERSEDED_NOTE)))
    facts.append(Fact(_("Time"), describe_call_time(call)))
    if call.input_tokens or call.output_tokens:
        text = _("%(input)s in, %(output)s out")
        if call.cached_tokens:
            text = _("%(input)s in (%(cached)s cached), %(output)s out")
        values = {
            "input": format_count(call.input_tokens),
            "cached": format_count(call.cached_tokens),
            "output": format_count(call.output_tokens),
        }
        facts.append(Fact(_("Tokens"), text % values))
    return facts


def describe_call_time(call: ModelCall) -> str:
    """Return the duration of a call, until its first token, and its speed."""
    if call.first_token is None:
        return duration(call.elapsed)
    values = {"time": duration(call.elapsed), "first": duration(call.first_token)}
    writing = call.elapsed - call.first_token
    if not call.output_tokens or writing <= 0.05:
        return _("%(time)s, first token after %(first)s") % values
    speed = format_number(call.output_tokens / writing, places=0)
    return _("%(time)s, first token after %(first)s, %(speed)s tokens/s") % {
        **values,
        "speed": speed,
    }


def list_reuse_facts(row: ModelCall | AgentStep) -> list[Fact]:
    """Return whether a row was reused by a fork, or edited."""
    if row.is_edited:
        return [Fact(_("Edited"), _("Edited by a person when the run was forked."))]
    text = _("Copied from the run this one was forked from, at no cost.")
    return [Fact(_("Reused"), text)] if row.is_copied else []


def list_requested_calls(call: ModelCall) -> list[RequestedCall]:
    """Return the calls that a reply requested, with their states."""
    steps = AgentStep.objects.filter(model_call=call).defer("observation", "value")
    return [
        RequestedCall(
            tool=step.tool,
            number=step.index + call.number + 2,
            input=render_arguments(step.tool_input),
            status=render_action_status(step.status),
        )
        for step in steps.order_by("index")
    ]


def render_action_status(name: str) -> SafeString:
    """Return shape and label of a call's state."""
    shape, word = ACTION_STATUSES[name]
    return status_tag(shape, word=str(word))


def list_step_facts(step: AgentStep) -> list[Fact]:
    """Return tool, state, effect and time of a call."""
    facts = [
        Fact(_("Tool"), step.tool),
        Fact(_("Status"), get_step_status_label(step)),
        *list_reuse_facts(step),
    ]
    if step.answered_by:
        label, text = ANSWERED_BY_FACTS[step.answered_by]
        facts.append(Fact(str(label), str(text)))
    if progress := get_current_progress(step):
        facts.append(Fact(_("Progress"), progress))
    if step.effect:
        facts.append(Fact(_("Effect"), str(Tool.Effect(step.effect).label)))
    if step.duration is not None and not step.answered_by:
        facts.append(Fact(_("Time"), duration(step.duration)))
    if step.attempts > 1:
        facts.append(Fact(_("Attempts"), str(step.attempts)))
    return facts


def get_step_status_label(step: AgentStep) -> str:
    return str(ACTION_STATUSES[step.status][1])


def build_step_text(run: Run, step: AgentStep, number: int) -> StepText:
    """Return input and result of a step, cut if they are long."""
    whole = step.observation
    has_result = step.is_answered or bool(whole)
    more = len(whole) - MAX_SHOWN_CHARACTERS
    return StepText(
        input=render_arguments(step.tool_input),
        observation=render_json_or_text(
            whole if more <= 0 else whole[:MAX_SHOWN_CHARACTERS]
        ),
        has_failed=step.has_failed,
        has_result=has_result,
        words=_("%(status)s. No result yet.") % {"status": get_step_status_label(step)},
        size=format_text_size(whole) if len(whole) > 1000 else "",
        cut=format_more_characters(more) if more > 0 else "",
        whole_url=reverse("run-raw", args=[run.pk, number, "observation"]),
        media=tuple(list_step_media(run, step, number)),
    )


def list_step_media(run: Run, step: AgentStep, number: int) -> Iterator[ShownMedia]:
    for one in StepMedia.objects.filter(step=step).defer("content"):
        label = _("Image %(number)s") if one.is_image else _("Audio %(number)s")
        url = reverse("run-media", args=[run.pk, number, one.position])
        yield ShownMedia(url, one.is_image, label % {"number": one.position})


def tool_tab_context(run: Run, place: RowRecord) -> dict[str, Any]:
    step = place.step
    assert step is not None
    text = build_step_text(run, step, place.number)
    facts = [
        *list_step_facts(step),
        Fact(_("Idempotency key"), f"{run.pk}:{step.index}"),
    ]
    return {
        "facts": facts,
        "input": text.input,
        "observation": text.observation if text.has_result else text.words,
        "has_result": text.has_result,
        "size": text.size,
        "cut": text.cut,
        "whole_url": text.whole_url,
        "media": text.media,
        "decisions": Decision.objects.filter(step=step).select_related("by"),
    }


def rebuild_row_prompt(run: Run, place: RowRecord) -> RebuiltPrompt | None:
    """Return the prompt that the row's call sent, or is sending."""
    if place.call is None:
        return rebuild_next_prompt(run)
    return load_sent_prompt(place.call)


def final_answer_context(run: Run) -> dict[str, Any]:
    """Return the final answer and the input as HTML."""
    output = run.answer
    shown: dict[str, Any] = {"inputs": render_json(run.inputs), "can_copy": False}
    if len(run.inputs) == 1:
        (only,) = run.inputs.values()
        shown["question"] = only if isinstance(only, str) else ""
    if isinstance(output, str) and output:
        shown |= {"html": render_markdown(output), "can_copy": True}
    elif output is not None and output != "":
        shown |= {"json": render_json(output), "can_copy": True}
    elif kept := load_partial_texts([run]):
        shown["kept"] = render_markdown(kept[run.pk])
    return shown


def render_arguments(value: Any) -> SafeString:
    """Return an input as indented JSON or text."""
    return render_json_or_text(value) if isinstance(value, str) else render_json(value)


def indent_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def format_text_size(text: str) -> str:
    return format_byte_size(len(text.encode("utf-8", "replace")))


def format_byte_size(size: int) -> str:
    """Write a number of bytes as kB or MB."""
    if size < 100_000:
        return f"{format_number(size / 1000, places=1)} kB"
    return f"{format_number(size / 1_000_000, places=1)} MB"


def format_more_characters(count: int) -> str:
    text = ngettext("%(count)s more character.", "%(count)s more characters.", count)
    return text % {"count": format_count(count)}
