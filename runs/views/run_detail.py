"""The right side of the run page: the chosen step in its tabs, or the answer."""

import json
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from django.db.models import F
from django.urls import reverse
from django.utils.safestring import SafeString
from pydantic_core import to_json

from runs.engine.types import ModelRequest
from runs.llm.chat import body_of, tool_bytes
from runs.models import AgentStep, Decision, ModelAttempt, ModelCall, Run
from runs.services.rebuild_prompt import (
    RebuiltPrompt,
    prompt_of_next,
    rebuild_prompt,
)
from runs.services.record import is_set_aside
from runs.templatetags.look import duration
from runs.templatetags.look import status as status_tag
from runs.views.markdown import pretty, render_json, render_markdown
from runs.views.run_rows import CUT_OFF, next_number
from runs.views.run_state import doing_of
from tools.models import Tool

SHOWN = 20_000
"""Characters of a result that a page shows; the rest can be downloaded."""

ASKING = (AgentStep.Status.AWAITING_APPROVAL, AgentStep.Status.UNKNOWN)

SET_ASIDE = "The run was resumed here, and the model asked again in place of this."

ACTION_LOOKS = {
    "planned": ("queued", "Planned"),
    "started": ("running", "Running"),
    "awaiting_approval": ("awaiting_approval", "Needs approval"),
    "succeeded": ("succeeded", "Done"),
    "failed": ("failed", "Failed"),
    "rejected": ("cancelled", "Rejected"),
    "unknown": ("awaiting_decision", "Outcome unknown"),
    "skipped": ("cancelled", "Skipped"),
    "cancelled": ("cancelled", "Cancelled"),
}


class Fact(NamedTuple):
    """A label and what it says."""

    label: str
    text: str


class Tab(NamedTuple):
    """One view of a step."""

    name: str
    word: str


class Action(NamedTuple):
    """A call that a reply asked for."""

    tool: str
    number: int
    input: SafeString
    status: SafeString


@dataclass(frozen=True)
class StepText:
    """A tool call's input and observation, as they are shown."""

    input: SafeString
    observation: SafeString
    has_failed: bool
    is_told: bool
    words: str
    size: str = ""
    cut: str = ""
    whole_url: str = ""


@dataclass(frozen=True)
class Chosen:
    """What the Readable tab shows of one row."""

    number: int
    facts: tuple[Fact, ...] = ()
    thought: SafeString | str = ""
    reasoning: SafeString | str = ""
    actions: tuple[Action, ...] = ()
    actions_title: str = ""
    step: StepText | None = None
    child: Run | None = None
    """The run of the agent that was called."""
    answer: SafeString | str = ""
    """What it answered, in place of the observation."""


@dataclass(frozen=True)
class Place:
    """A row of the run: a call, one of its steps, or failed attempts alone."""

    number: int
    call: ModelCall | None = None
    step: AgentStep | None = None
    attempts: list[ModelAttempt] = field(default_factory=list)
    is_asking: bool = False
    """Whether it is the call that has no reply yet, but may get one."""

    @property
    def title(self) -> str:
        """What the pane is headed."""
        if self.step is not None:
            return f"Step {self.number} · {self.step.tool}"
        return f"Step {self.number} · model call{self._end}"

    @property
    def _end(self) -> str:
        if self.call is not None:
            return ""
        if self.is_asking:
            return ", under way"
        return ", cut off" if self.is_cut_off else ", failed"

    @property
    def is_cut_off(self) -> bool:
        """Whether a person ended it."""
        return bool(self.attempts) and self.attempts[-1].code == CUT_OFF

    @property
    def icon(self) -> str:
        """The icon beside it."""
        if self.call is None and not self.is_asking:
            return "stop" if self.is_cut_off else "alert"
        return "tool" if self.step is not None else "model"

    @property
    def tabs(self) -> list[Tab]:
        """The views there are."""
        tabs = []
        if self.call is not None:
            tabs = [
                Tab("readable", "Readable"),
                Tab("prompt", "What the model saw"),
                Tab("request", "Raw request"),
                Tab("response", "Raw response"),
            ]
        if self.step is not None:
            tabs.append(Tab("tool", "Tool"))
        if self.attempts:
            tabs.append(Tab("attempts", f"Attempts {len(self.attempts)}"))
        if self.call is None:
            tabs.append(Tab("prompt", "What the model saw"))
            tabs.append(Tab("request", "Raw request"))
        return tabs


def place_of(run: Run, number: int) -> Place | None:
    """Return the row `number` of `run`; None where there is none (yet)."""
    calls = ModelCall.objects.filter(run=run)
    call = (
        calls.annotate(row=F("number") + F("at_index") + 1).filter(row=number).first()
    )
    if call is not None:
        return Place(number, call, attempts=attempts_at(run, call.number))
    steps = AgentStep.objects.filter(run=run).select_related("model_call")
    step = (
        steps.annotate(row=F("index") + F("model_call__number") + 2)
        .filter(row=number)
        .first()
    )
    if step is not None:
        return Place(number, step.model_call, step)
    if number != next_number(run):
        return None
    attempts = attempts_at(run, run.next_number)
    is_asking = run.status == Run.Status.RUNNING and not doing_of([run.pk])
    is_asking = is_asking or (not run.is_over and bool(attempts))
    if not is_asking and not attempts:
        return None
    return Place(number, attempts=attempts, is_asking=is_asking)


def newest_place(run: Run) -> Place | None:
    """Return the row that waits for a person, else the newest with something to read.

    None before there is one.
    """
    call = ModelCall.objects.filter(run=run).order_by("-number").first()
    if call is None:
        return None
    steps = AgentStep.objects.filter(model_call=call)
    step = steps.filter(status__in=ASKING).order_by("index").first()
    step = step or steps.exclude(started_at=None).order_by("-index").first()
    if step is not None:
        return Place(step.index + call.number + 2, call, step)
    return Place(call.number + call.at_index + 1, call)


def attempts_at(run: Run, number: int) -> list[ModelAttempt]:
    """Return the failed attempts of one model call."""
    return list(ModelAttempt.objects.filter(run=run, number=number))


def readable(run: Run, place: Place) -> Chosen:
    """Return what the Readable tab shows."""
    if place.step is not None:
        return readable_step(run, place.step, place.number)
    call = place.call
    if call is None:
        return Chosen(place.number, (Fact("Error", place.attempts[-1].message),))
    text, reasoning = call.reply.get("text", ""), call.reply.get("reasoning", "")
    actions = actions_of(call)
    many = "1 tool call" if len(actions) == 1 else f"{len(actions)} tool calls"
    return Chosen(
        place.number,
        facts=tuple(call_facts(call)),
        thought=render_markdown(text) if text else "",
        reasoning=render_markdown(reasoning) if reasoning else "",
        actions=tuple(actions),
        actions_title=f"Asked for {many}",
    )


def readable_step(run: Run, step: AgentStep, number: int) -> Chosen:
    """Return what it shows of a call; of a called agent its run and its words."""
    chosen = Chosen(
        number,
        facts=tuple(step_facts(step)),
        thought=render_markdown(step.log) if step.log else "",
        step=step_text(run, step, number),
        child=child_of(step),
    )
    if chosen.child is None:
        return chosen
    has_answer = step.status == AgentStep.Status.SUCCEEDED
    return replace(
        chosen,
        facts=(),
        answer=render_markdown(step.observation[:SHOWN]) if has_answer else "",
    )


def child_of(step: AgentStep) -> Run | None:
    """Return the run of the agent that the step has called."""
    if step.tool_ref_id is not None:
        return None
    runs = Run.objects.select_related("agent", "version")
    return runs.filter(parent_step=step).first()


def call_facts(call: ModelCall) -> list[Fact]:
    """Return model, time and tokens of a call."""
    model = call.model or call.settings.get("model", "")
    provider = call.settings.get("provider", "")
    parameters = ", ".join(
        f"{key} {value}"
        for key, value in (call.settings.get("parameters") or {}).items()
    )
    through = f"{model} through provider {provider}" if provider else model
    facts = [Fact("Model", ", ".join(filter(None, [through, parameters])))]
    facts += reuse_facts(call, "reply")
    if is_set_aside(call, list(call.run.resumes.all())):
        facts.append(Fact("Set aside", SET_ASIDE))
    took = duration(call.elapsed)
    if call.first_token is not None:
        took += f", first token after {duration(call.first_token)}"
        writing = call.elapsed - call.first_token
        if call.output_tokens and writing > 0.05:
            took += f", {call.output_tokens / writing:.0f} tokens/s"
    facts.append(Fact("Time", took))
    if call.input_tokens or call.output_tokens:
        cached = f" ({call.cached_tokens:,} cached)" if call.cached_tokens else ""
        facts.append(
            Fact(
                "Tokens",
                f"{call.input_tokens:,} in{cached}, {call.output_tokens:,} out",
            )
        )
    return facts


def reuse_facts(row: ModelCall | AgentStep, what: str) -> list[Fact]:
    """Say that a fork has reused a row, or that a person wrote it."""
    if row.is_edited:
        return [Fact("Edited", f"A person wrote this {what} where the run was forked.")]
    told = "From the run this one was forked from. It cost nothing here."
    return [Fact("Reused", told)] if row.is_copied else []


def actions_of(call: ModelCall) -> list[Action]:
    """Return the calls a reply asked for, with what became of each."""
    steps = AgentStep.objects.filter(model_call=call).defer("observation", "value")
    return [
        Action(
            tool=step.tool,
            number=step.index + call.number + 2,
            input=as_code(step.tool_input),
            status=action_status(step.status),
        )
        for step in steps.order_by("index")
    ]


def action_status(name: str) -> SafeString:
    """Return shape and word of a call's state."""
    shape, word = ACTION_LOOKS[name]
    return status_tag(shape, word=word)


def step_facts(step: AgentStep) -> list[Fact]:
    """Return tool, state, effect and time of a call."""
    facts = [Fact("Tool", step.tool), Fact("State", step.get_status_display())]
    facts += reuse_facts(step, "result")
    if step.effect:
        facts.append(Fact("Effect", Tool.Effect(step.effect).label))
    if step.duration is not None:
        facts.append(Fact("Time", duration(step.duration)))
    if step.attempts > 1:
        facts.append(Fact("Attempts", str(step.attempts)))
    return facts


def step_text(run: Run, step: AgentStep, number: int) -> StepText:
    """Return input and observation, cut where they are long."""
    whole = step.observation
    is_told = step.is_answered or bool(whole)
    more = len(whole) - SHOWN
    return StepText(
        input=as_code(step.tool_input),
        observation=pretty(whole if more <= 0 else whole[:SHOWN]),
        has_failed=step.has_failed,
        is_told=is_told,
        words=f"{step.get_status_display()}. There is no result yet.",
        size=size_of(whole) if len(whole) > 1000 else "",
        cut=f"{more:,} more characters." if more > 0 else "",
        whole_url=reverse("run-raw", args=[run.pk, number, "observation"]),
    )


def tool_tab(run: Run, place: Place) -> dict[str, Any]:
    """Return what the Tool tab shows."""
    step = place.step
    assert step is not None
    text = step_text(run, step, place.number)
    facts = [*step_facts(step), Fact("Idempotency key", f"{run.pk}:{step.index}")]
    return {
        "facts": facts,
        "input": text.input,
        "observation": text.observation if text.is_told else text.words,
        "is_told": text.is_told,
        "size": text.size,
        "cut": text.cut,
        "whole_url": text.whole_url,
        "decisions": Decision.objects.filter(step=step).select_related("by"),
    }


def rebuilt_of(run: Run, place: Place) -> RebuiltPrompt | None:
    """Return what the row's call sent, or sends."""
    if place.call is None:
        return prompt_of_next(run)
    return rebuild_prompt(place.call)


class RawRequest(NamedTuple):
    """The body a call sent, indented, and a note about it."""

    text: str
    note: str
    size: int = 0
    """Bytes of the whole body, as it is sent."""


def raw_request(run: Run, place: Place, *, most: int | None = None) -> RawRequest:
    """Return the body a call sent; with `most`, its first so many characters."""
    rebuilt = rebuilt_of(run, place)
    if rebuilt is None:
        return RawRequest("", "The record does not lead to this request any more.")
    sent = sent_body(rebuilt.request)
    if most is None:
        text = indented_body(json.loads(sent))
    else:
        text = indented_body(body_as_sent(beginning_of(rebuilt.request, most)))[:most]
    if place.call is None:
        note = "Built from the record: what is sent as long as there is no reply. "
    elif rebuilt.agrees:
        note = "Rebuilt from the record; the digest says that it is exactly what was "
        note += "sent. "
    else:
        note = "Rebuilt from the record; its digest differs from what was sent. "
    return RawRequest(text, note + "Keys and headers are never stored.", len(sent))


def beginning_of(request: ModelRequest, most: int) -> ModelRequest:
    """Return `request` without the messages after its first `most` characters.

    A character takes four bytes at most, and the indented text is the longer one.
    """
    length = 0
    for count, message in enumerate(request.messages, 1):
        length += len(message.canonical) // 4
        if length > most:
            return request.model_copy(update={"messages": request.messages[:count]})
    return request


def raw_response(place: Place) -> tuple[str, str]:
    """Return the provider's assembled message, indented, and a note about it."""
    assert place.call is not None
    reply = place.call.reply
    if reply.get("native"):
        return indented(reply["native"]), "The provider's message, unknown fields kept."
    return indented(reply), "The reply as it was stored."


def answer_of(run: Run) -> dict[str, Any]:
    """Return the final answer and the input as they are shown."""
    output = run.answer
    shown: dict[str, Any] = {"inputs": render_json(run.inputs), "can_copy": False}
    if isinstance(output, str) and output:
        shown |= {"html": render_markdown(output), "can_copy": True}
    elif output is not None and output != "":
        shown |= {"json": render_json(output), "can_copy": True}
    return shown


def as_code(value: Any) -> SafeString:
    """Return an input as it reads best."""
    return pretty(value) if isinstance(value, str) else render_json(value)


def indented(value: Any) -> str:
    """Return JSON for people."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def indented_body(body: dict[str, Any]) -> str:
    """Return a request's body for people; its messages may be thousands.

    They hold nothing but texts, which the quick writer writes as the other one does.
    """
    frame = indented({**body, "messages": []})
    messages = to_json({"messages": body["messages"]}, indent=2).decode()
    return frame.replace('\n  "messages": []', messages[1:-2], 1)


def body_as_sent(request: ModelRequest) -> dict[str, Any]:
    """Return the body of a request in the Chat Completions format, read."""
    found: dict[str, Any] = json.loads(sent_body(request))
    return found


def sent_body(request: ModelRequest) -> bytes:
    """Return the body of a request in the Chat Completions format."""
    return body_of(
        request,
        stream=request.settings.stream,
        tools=tool_bytes(request.tools),
        messages=[message.canonical for message in request.messages],
    )


def size_of(text: str) -> str:
    """Write how long a text is."""
    return in_bytes(len(text.encode("utf-8", "replace")))


def in_bytes(size: int) -> str:
    """Write a number of bytes for people."""
    if size < 100_000:
        return f"{size / 1000:.1f} kB"
    return f"{size / 1_000_000:.1f} MB"
