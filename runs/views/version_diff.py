"""What differs between two states of an agent: versions, or a version and the draft."""

import difflib
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from runs.engine.kinds.registry import KINDS
from runs.engine.types import AgentSpec, ExecutorOptions, PromptSpec
from tools.spec import ToolSpec

AROUND = 3
"""Lines shown around a change."""

OPTION_WORDS = {
    "max_iterations": "Rounds",
    "max_execution_time": "Working time",
    "early_stopping_method": "At a limit",
    "handle_parsing_errors": "A reply that cannot be read",
    "trim_intermediate_steps": "Rounds the model is shown",
    "return_intermediate_steps": "Steps in the output",
    "budget": "Budget",
    "loop_guard": "Stop when nothing changes any more",
    "observation_limit": "Bytes of a result the model is shown",
    "context_tokens": "Tokens a request may hold",
    "context_method": "When a request grows too long",
    "output_schema": "JSON Schema of the answer",
}


class State(NamedTuple):
    """What a run would be made of, whether it remembers, and what it says it does."""

    spec: AgentSpec
    memory: bool
    description: str


class Line(NamedTuple):
    """One line of a difference; `mark` is same, ins or del."""

    mark: str
    text: str


class Difference(NamedTuple):
    """One place in which two states differ: two short values, or lines."""

    what: str
    before: str
    after: str
    lines: tuple[Line, ...] = ()


def differences(old: State, new: State) -> list[Difference]:
    """Return each place that differs, in the order of the agent's page."""
    before, after = facts_of(old), facts_of(new)
    names = list(dict.fromkeys([*after, *before]))
    return [
        difference(name, before.get(name, ""), after.get(name, ""))
        for name in names
        if before.get(name, "") != after.get(name, "")
    ]


def difference(what: str, before: str, after: str) -> Difference:
    """Return short values as they are, and longer ones line by line."""
    if "\n" not in before + after and len(before) + len(after) < 120:
        return Difference(what, before or "nothing", after or "nothing")
    return Difference(what, before, after, tuple(lines_of(before, after)))


def lines_of(before: str, after: str) -> Iterator[Line]:
    """Yield the changed lines with some around them."""
    marks = {"+": "ins", "-": "del", " ": "same"}
    found = difflib.unified_diff(
        before.splitlines(), after.splitlines(), lineterm="", n=AROUND
    )
    for place, line in enumerate(found):
        if place < 2:  # the names of the two files
            continue
        if line.startswith("@@"):
            if place > 2:
                yield Line("gap", "…")
            continue
        yield Line(marks[line[0]], line[1:] or " ")


def facts_of(state: State) -> dict[str, str]:
    """Return everything that shapes a run, by its name on the page."""
    spec = state.spec
    kind = KINDS.get(spec.kind)
    model = spec.model
    return {
        "Name": spec.name,
        "What it does": state.description,
        "Kind": kind.title if kind else spec.kind,
        **prompt_facts(spec.prompt),
        "Provider": model.provider,
        "Model": model.model,
        **{f"Parameter {k}": plain(v) for k, v in sorted(model.parameters.items())},
        **{f"Tool {tool.name}": tool_text(tool) for tool in spec.tools},
        **option_facts(spec.executor),
        "Memory": "on" if state.memory else "off",
    }


def prompt_facts(prompt: PromptSpec | None) -> dict[str, str]:
    """Return the texts of a prompt; the kind's own is named, not repeated."""
    if prompt is None:
        return {"Instructions": "the kind's own"}
    values = {f"Value of {{{k}}}": v for k, v in prompt.partials.items()}
    if prompt.messages is None:
        return {"Instructions": prompt.template or "", **values}
    texts: dict[str, str] = {}
    for place, message in enumerate(prompt.messages):
        first = place == 0 and message.role == "system"
        name = "Instructions" if first else f"Message {place + 1}, {message.role}"
        texts[name] = message.template
    return texts | values


def tool_text(tool: ToolSpec) -> str:
    """Return what the model sees of a tool, and its rules; never how it is made."""
    rows = [
        "asks before each call" if tool.asks else "allowed",
        f"effect: {tool.effect}",
        f"timeout: {tool.timeout:g} s",
        *(f"{word}: {value}" for word, value in tool_limits(tool) if value),
        f"definition: revision {tool.revision}" if tool.revision else "",
        tool.description,
        plain(tool.args_schema) if tool.args_schema else "",
    ]
    return "\n".join(filter(None, rows))


def tool_limits(tool: ToolSpec) -> Iterator[tuple[str, object]]:
    """Yield what else an agent may set of a tool; empty values are the usual."""
    hours = tool.approval_hours
    yield "waits for an answer", None if hours is None else f"{hours:g} h"
    yield "if nobody answers", tool.at_expiry
    yield "tries after a failure", tool.retries
    yield "after a failed call", tool.on_error if tool.on_error != "feed_back" else ""
    yield "calls in one run", tool.calls_per_run
    yield "result cut at", tool.output_limit and f"{tool.output_limit} bytes"
    yield "hosts", ", ".join(tool.config.get("hosts") or ())
    yield "result is the answer", tool.return_direct and "yes"


def option_facts(options: ExecutorOptions) -> dict[str, str]:
    """Return limits and habits by the names of their fields."""
    values = options.model_dump(mode="json")
    return {word: option_text(values[name]) for name, word in OPTION_WORDS.items()}


def option_text(value: Any) -> str:
    """Write one limit."""
    if isinstance(value, dict):
        rows = (f"{key}: {plain(one)}" for key, one in value.items() if one is not None)
        return plain(value) if "type" in value else ", ".join(rows)
    return {None: "none", True: "yes", False: "no"}.get(value, str(value))


def plain(value: Any) -> str:
    """Write a value; objects as indented JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True)
