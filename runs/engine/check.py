"""All that can be wrong with an agent's spec, found before it runs.

Forms, agent files and the engine ask here, so that they all say the same.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from runs.engine.json_schema import flaw_of_schema
from runs.engine.kinds.kind import Kind
from runs.engine.kinds.registry import KINDS
from runs.engine.planning import EXCEPTION
from runs.engine.prompts import (
    flaws_of,
    input_variables_of,
    templates_of,
    variables_of,
)
from runs.engine.toolbox import stripped_name
from runs.engine.types import AgentSpec, ExecutorOptions, PromptSpec, Result, RunError
from tools.spec import ToolSpec

FUNCTION_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""What model servers take as a function's name."""

EARLY_STOPPING = ("force", "generate")
_LONGEST_NAME = 64

MOST_ROUNDS = 10_000
MOST_SECONDS = 604_800
"""A week of work."""
MOST_TOKENS = 10_000_000_000
MOST_COST = 1_000_000
MOST_CONTEXT = 100_000_000
MOST_OBSERVED = 64 * 1024 * 1024


class Problem(NamedTuple):
    """One mistake: the field of the spec, and a sentence for who wrote it."""

    field: str
    message: str


def problems_of(spec: AgentSpec) -> list[Problem]:
    """Return every mistake in `spec`; an empty list when it can run."""
    kind = KINDS.get(spec.kind)
    if kind is None:
        known = ", ".join(sorted(KINDS))
        return [
            Problem("kind", f"There is no kind {spec.kind!r}. It is one of {known}.")
        ]
    return [
        *_prompt_problems(spec.prompt or kind.prompt, kind),
        *_tool_problems(spec.tools, kind),
        *option_problems(spec.executor),
    ]


def refusal_of(spec: AgentSpec, inputs: Mapping[str, Any]) -> Result | None:
    """Return the end of a run that cannot even begin, or None."""
    if problems := problems_of(spec):
        told = " ".join(problem.message for problem in problems)
        return Result(status="failed", error=RunError(code="spec", message=told))
    needed = input_variables_of(spec.prompt or KINDS[spec.kind].prompt)
    if missing := [name for name in needed if name not in inputs]:
        told = f"The inputs lack what the prompt needs: {', '.join(missing)}."
        return Result(status="failed", error=RunError(code="inputs", message=told))
    return None


def _prompt_problems(prompt: PromptSpec, kind: Kind) -> Iterator[Problem]:
    if (prompt.template is None) == (prompt.messages is None):
        yield Problem(
            "prompt", "A prompt is either one template or a list of messages."
        )
        return
    for index, template in enumerate(templates_of(prompt)):
        field = "template" if prompt.messages is None else f"messages.{index}"
        for flaw in flaws_of(template):
            yield Problem(f"prompt.{field}", str(flaw))
    names = variables_of(prompt)
    if kind.as_text is not None and "agent_scratchpad" not in names:
        told = (
            f"The kind {kind.name!r} needs the variable {{agent_scratchpad}}, where "
            "the steps so far are written."
        )
        yield Problem("prompt", told)


def _tool_problems(tools: tuple[ToolSpec, ...], kind: Kind) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, tool in enumerate(tools):
        field = f"tools.{index}"
        if (told := name_problem(tool.name, kind)) is not None:
            yield Problem(f"{field}.name", told)
        if tool.name in seen:
            told = f"Two tools are called {tool.name!r}. Rename one of them."
            yield Problem(f"{field}.name", told)
        seen.add(tool.name)
        if tool.args_schema is not None:
            flaw = flaw_of_schema(tool.args_schema)
            if flaw is not None:
                yield Problem(f"{field}.args_schema", f"{tool.name}: {flaw}")
    if kind.tools is not None and len(tools) != kind.tools:
        told = f"The kind {kind.name!r} works with exactly {kind.tools} tool."
        yield Problem("tools", told)


def name_problem(name: str, kind: Kind | None = None) -> str | None:
    """Return why no tool may have `name`, or None.

    Without a kind the strictest rule is meant, so that the tool suits every agent.
    """
    strict = kind is None or kind.needs_functions
    if strict and not FUNCTION_NAME.fullmatch(name):
        return (
            f"{name!r} is no tool name: use 1 to 64 letters, digits, underscores and "
            "hyphens."
        )
    if not name or len(name) > _LONGEST_NAME or stripped_name(name) != name:
        return f"{name!r} is no tool name that a model could write."
    if "\n" in name or "[" in name:
        return f"{name!r} is no tool name: it must be one line without brackets."
    reserved = (EXCEPTION, *(kind.reserved if kind else ()))
    if name.casefold() in (word.casefold() for word in reserved):
        return f"{name!r} has a meaning of its own and cannot name a tool."
    return None


def option_problems(options: ExecutorOptions) -> Iterator[Problem]:
    """Yield what is wrong with an executor's limits and habits."""
    yield from _limit_problems(options)
    if options.early_stopping_method not in EARLY_STOPPING:
        yield _option("early_stopping_method", "must be force or generate")
    guard = options.loop_guard
    if guard is not None and (guard.hint < 1 or guard.stop < 1):
        yield _option("loop_guard", "must count at least 1 round")
    if guard is not None and max(guard.hint, guard.stop) > MOST_ROUNDS:
        yield _option("loop_guard", f"must count at most {MOST_ROUNDS:,} rounds")
    if options.output_schema is not None:
        flaw = flaw_of_schema(options.output_schema)
        if flaw is not None:
            yield Problem("executor.output_schema", flaw)


def _limit_problems(options: ExecutorOptions) -> Iterator[Problem]:
    rounds, seconds = options.max_iterations, options.max_execution_time
    if rounds is not None and rounds < 0:
        yield _option("max_iterations", "must be 0 or more, or empty for no limit")
    if rounds is not None and rounds > MOST_ROUNDS:
        yield _option("max_iterations", f"must be at most {MOST_ROUNDS:,}, or empty")
    if seconds is not None and not seconds >= 0:
        yield _option("max_execution_time", "must be 0 or more seconds, or empty")
    if seconds is not None and seconds > MOST_SECONDS:
        told = f"must be at most {MOST_SECONDS:,} seconds (a week), or empty"
        yield _option("max_execution_time", told)
    if options.observation_limit < 1:
        yield _option("observation_limit", "must be at least 1 byte")
    if options.observation_limit > MOST_OBSERVED:
        yield _option("observation_limit", f"must be at most {MOST_OBSERVED:,} bytes")
    if options.trim_intermediate_steps > MOST_ROUNDS:
        told = f"must be at most {MOST_ROUNDS:,}, or -1 for all"
        yield _option("trim_intermediate_steps", told)
    yield from _context_problems(options)
    yield from _budget_problems(options)


def _context_problems(options: ExecutorOptions) -> Iterator[Problem]:
    size = options.context_tokens
    if size is not None and size < 1:
        yield _option("context_tokens", "must be at least 1, or empty")
    if size is not None and size > MOST_CONTEXT:
        yield _option("context_tokens", f"must be at most {MOST_CONTEXT:,}, or empty")


def _budget_problems(options: ExecutorOptions) -> Iterator[Problem]:
    budget = options.budget
    if budget is None:
        return
    if budget.tokens is not None and budget.tokens < 0:
        yield _option("budget.tokens", "must be 0 or more")
    if budget.tokens is not None and budget.tokens > MOST_TOKENS:
        yield _option("budget.tokens", f"must be at most {MOST_TOKENS:,}, or empty")
    if budget.cost is not None and not budget.cost >= 0:
        yield _option("budget.cost", "must be 0 or more")
    if budget.cost is not None and budget.cost > MOST_COST:
        yield _option("budget.cost", f"must be at most {MOST_COST:,}, or empty")


def _option(name: str, rule: str) -> Problem:
    return Problem(f"executor.{name}", f"{name} {rule}.")
