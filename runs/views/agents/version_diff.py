"""Differences between two versions of an agent, or a version and the draft."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext

from runs.engine.kinds.registry import get_prompt_of_spec
from runs.engine.types import AgentSpec, ExecutorOptions, PromptSpec
from runs.ui.kind_labels import get_kind_label
from tools.spec import ToolSpec
from tools.ui.diff import DiffLine, diff_texts

CONTEXT_LINES = 3
"""Lines shown around a change."""

OPTION_LABELS = {
    "max_iterations": gettext_lazy("Rounds"),
    "max_execution_time": gettext_lazy("Working time"),
    "max_concurrent_runs": gettext_lazy("Runs at once"),
    "early_stopping_method": gettext_lazy("When a limit is reached"),
    "handle_parsing_errors": gettext_lazy("When a reply cannot be parsed"),
    "trim_intermediate_steps": gettext_lazy("Rounds sent to the model"),
    "return_intermediate_steps": gettext_lazy("Steps in the output"),
    "budget": gettext_lazy("Budget"),
    "loop_guard": gettext_lazy("Stop repeated rounds"),
    "observation_limit": gettext_lazy("Max result size (bytes)"),
    "context_tokens": gettext_lazy("Max request tokens"),
    "context_method": gettext_lazy("When a request is too long"),
    "output_schema": gettext_lazy("JSON Schema of the answer"),
    "output_parser": gettext_lazy("Output parser"),
    "parsing_error_handler": gettext_lazy("Parsing-error handler"),
}


class AgentState(NamedTuple):
    """What a version or the draft consists of: its spec, and what the spec lacks."""

    spec: AgentSpec
    memory: bool
    description: str
    suggested_questions: tuple[str, ...]


class VersionDifference(NamedTuple):
    """One difference between two states: two short values, or lines."""

    what: str
    before: str
    after: str
    lines: tuple[DiffLine, ...] = ()


def diff_agent_states(old: AgentState, new: AgentState) -> list[VersionDifference]:
    """Return the differences, in the order of the agent's page."""
    before, after = list_agent_facts(old), list_agent_facts(new)
    names = list(dict.fromkeys([*after, *before]))
    return [
        diff_facts(name, before.get(name, ""), after.get(name, ""))
        for name in names
        if before.get(name, "") != after.get(name, "")
    ]


def diff_facts(what: str, before: str, after: str) -> VersionDifference:
    """Compare short values as a whole, and longer ones line by line."""
    if "\n" not in before + after and len(before) + len(after) < 120:
        return VersionDifference(what, before or _("empty"), after or _("empty"))
    lines = diff_texts(before, after, context=CONTEXT_LINES, is_exact=True, most=400)
    return VersionDifference(what, before, after, tuple(lines))


def list_agent_facts(state: AgentState) -> dict[str, str]:
    """Return everything that affects a run, by its label on the page."""
    spec = state.spec
    model = spec.model
    return {
        _("Name"): spec.name,
        _("Description"): state.description,
        _("Kind"): get_kind_label(spec.kind).title,
        **list_prompt_facts(spec),
        _("Provider"): model.provider,
        _("Model"): model.model,
        **{
            _("Parameter %(name)s") % {"name": k}: format_fact(v)
            for k, v in sorted(model.parameters.items())
        },
        **{
            _("Tool %(name)s") % {"name": tool.name}: format_tool_facts(tool)
            for tool in spec.tools
        },
        **list_option_facts(spec.executor),
        _("Memory"): _("On") if state.memory else _("Off"),
        _("Suggested questions"): "\n".join(state.suggested_questions),
    }


def list_prompt_facts(spec: AgentSpec) -> dict[str, str]:
    """Return the texts of a prompt; the instructions of the built-in one are named."""
    texts = list_prompt_texts(get_prompt_of_spec(spec))
    if spec.prompt is None:
        texts[_("Instructions")] = _("Built-in prompt of the kind")
    return texts


def list_prompt_texts(prompt: PromptSpec) -> dict[str, str]:
    values = {
        _("Value of {%(name)s}") % {"name": name}: value
        for name, value in prompt.partials.items()
    }
    if prompt.messages is None:
        return {_("Instructions"): prompt.template or "", **values}
    texts: dict[str, str] = {}
    for place, message in enumerate(prompt.messages):
        first = place == 0 and message.role == "system"
        name = (
            _("Instructions")
            if first
            else _("Message %(number)s (%(role)s)")
            % {"number": place + 1, "role": message.role}
        )
        texts[name] = message.template
    return texts | values


def format_tool_facts(tool: ToolSpec) -> str:
    """Describe a tool as the model sees it, with its rules; never its configuration."""
    rows = [
        _("Requires approval of each call") if tool.asks else _("Allowed"),
        _("Effect: %(value)s") % {"value": tool.effect},
        _("Timeout: %(seconds)s s") % {"seconds": f"{tool.timeout:g}"},
        *iter_tool_limits(tool),
        _("Definition: revision %(number)s") % {"number": tool.revision}
        if tool.revision
        else "",
        tool.description,
        format_fact(tool.args_schema) if tool.args_schema else "",
    ]
    return "\n".join(filter(None, rows))


def iter_tool_limits(tool: ToolSpec) -> Iterator[str]:
    """Yield a line for each other setting that is not the default."""
    hours, limit = tool.approval_hours, tool.output_limit
    if hours:
        yield _("Approval timeout: %(hours)s h") % {"hours": f"{hours:g}"}
    if tool.at_expiry:
        yield _("When the approval times out: %(value)s") % {"value": tool.at_expiry}
    if tool.retries:
        yield _("Retries: %(count)s") % {"count": tool.retries}
    if tool.on_error != "feed_back":
        yield _("When a call fails: %(value)s") % {"value": tool.on_error}
    if tool.calls_per_run:
        yield _("Max calls per run: %(count)s") % {"count": tool.calls_per_run}
    if limit:
        yield ngettext(
            "Max result size: %(count)s byte", "Max result size: %(count)s bytes", limit
        ) % {"count": limit}
    if hosts := tool.config.get("hosts"):
        yield _("Hosts: %(hosts)s") % {"hosts": ", ".join(hosts)}
    if tool.return_direct:
        yield _("Returns the result as the final answer")


def list_option_facts(options: ExecutorOptions) -> dict[str, str]:
    """Return limits and options by the labels of their fields."""
    values = options.model_dump(mode="json")
    return {
        str(label): format_option(values[name]) for name, label in OPTION_LABELS.items()
    }


def format_option(value: Any) -> str:
    if isinstance(value, dict):
        rows = (
            f"{key}: {format_fact(one)}"
            for key, one in value.items()
            if one is not None
        )
        return (
            format_fact(value)
            if "type" in value
            else pgettext("between items of a list", ", ").join(rows)
        )
    if isinstance(value, bool):
        return _("Yes") if value else _("No")
    return _("None") if value is None else str(value)


def format_fact(value: Any) -> str:
    """Format a value; objects as indented JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True)
