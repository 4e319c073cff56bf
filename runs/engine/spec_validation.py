"""Validation of an agent's spec before it runs.

Forms, agent files and the engine share it, so that they report the same problems.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from runs.engine.kinds.kind import AgentKind
from runs.engine.kinds.registry import (
    AGENT_KINDS,
    OUTPUT_PARSERS,
    PARSING_ERROR_HANDLERS,
    get_prompt_of_spec,
)
from runs.engine.parsing.json_schema import find_schema_problem
from runs.engine.planning import PARSE_ERROR_TOOL
from runs.engine.prompts import (
    find_template_problems,
    input_variables_of_prompt,
    templates_of_prompt,
    variables_of_prompt,
)
from runs.engine.types import (
    AgentResult,
    AgentSpec,
    ExecutorOptions,
    PromptSpec,
    RunError,
)
from tools.spec import ToolSpec
from tools.tool_name import build_function_name, is_tool_name

EARLY_STOPPING = ("force", "generate")

MAX_ROUNDS = 10_000
MAX_EXECUTION_SECONDS = 604_800
"""One week."""
MAX_BUDGET_TOKENS = 10_000_000_000
MAX_BUDGET_COST = 1_000_000
MAX_CONCURRENT_RUNS = 1_000_000
MAX_CONTEXT_TOKENS = 100_000_000
MAX_OBSERVATION_BYTES = 64 * 1024 * 1024


class SpecProblem(NamedTuple):
    """One problem: the field of the spec, and a sentence for its author."""

    field: str
    message: str


def find_spec_problems(spec: AgentSpec) -> list[SpecProblem]:
    """Return every problem of `spec`; an empty list if it can run."""
    kind = AGENT_KINDS.get(spec.kind)
    if kind is None:
        known = ", ".join(sorted(AGENT_KINDS))
        return [
            SpecProblem("kind", f"Kind {spec.kind!r} not found. Use one of {known}.")
        ]
    return [
        *_find_prompt_problems(spec.prompt or kind.prompt, kind),
        *_find_tool_problems(spec.tools, kind),
        *find_option_problems(spec.executor),
    ]


def find_start_failure(
    spec: AgentSpec, inputs: Mapping[str, Any]
) -> AgentResult | None:
    """Return the result of a run that cannot even start, or None."""
    if problems := find_spec_problems(spec):
        text = " ".join(problem.message for problem in problems)
        return AgentResult(status="failed", error=RunError(code="spec", message=text))
    needed = input_variables_of_prompt(get_prompt_of_spec(spec))
    if missing := [name for name in needed if name not in inputs]:
        text = (
            f"The inputs do not contain variables of the prompt: {', '.join(missing)}."
        )
        return AgentResult(status="failed", error=RunError(code="inputs", message=text))
    return None


def _find_prompt_problems(prompt: PromptSpec, kind: AgentKind) -> Iterator[SpecProblem]:
    if (prompt.template is None) == (prompt.messages is None):
        yield SpecProblem(
            "prompt", "A prompt is either one template or a list of messages."
        )
        return
    for index, template in enumerate(templates_of_prompt(prompt)):
        field = "template" if prompt.messages is None else f"messages.{index}"
        for flaw in find_template_problems(template):
            yield SpecProblem(f"prompt.{field}", str(flaw))
    names = variables_of_prompt(prompt)
    if kind.as_text is not None and "agent_scratchpad" not in names:
        text = (
            f"The kind {kind.name!r} needs the variable {{agent_scratchpad}}, where "
            "the steps so far are written."
        )
        yield SpecProblem("prompt", text)


def _find_tool_problems(
    tools: tuple[ToolSpec, ...], kind: AgentKind
) -> Iterator[SpecProblem]:
    seen: set[str] = set()
    for index, tool in enumerate(tools):
        field = f"tools.{index}"
        if (text := find_tool_name_problem(tool.name, kind)) is not None:
            yield SpecProblem(f"{field}.name", text)
        if {tool.name, build_function_name(tool.name)} & seen:
            text = f"Two tools are named {tool.name!r}. Rename one of them."
            yield SpecProblem(f"{field}.name", text)
        seen |= {tool.name, build_function_name(tool.name)}
        if tool.args_schema is not None:
            flaw = find_schema_problem(tool.args_schema)
            if flaw is not None:
                yield SpecProblem(f"{field}.args_schema", f"{tool.name}: {flaw}")
    if kind.tools is not None and len(tools) != kind.tools:
        text = f"The kind {kind.name!r} requires exactly {kind.tools} tool."
        yield SpecProblem("tools", text)


def find_tool_name_problem(name: str, kind: AgentKind | None = None) -> str | None:
    """Return why no tool of an agent of `kind` may have `name`, or None."""
    if not is_tool_name(name):
        return (
            f"{name!r} is not a valid tool name: use 1 to 64 characters on one line, "
            "without brackets, and without spaces or quotes at the ends."
        )
    reserved = (PARSE_ERROR_TOOL, *(kind.reserved if kind else ()))
    if name.casefold() in (word.casefold() for word in reserved):
        return f"{name!r} has a meaning of its own and cannot name a tool."
    return None


def find_option_problems(options: ExecutorOptions) -> Iterator[SpecProblem]:
    yield from _find_limit_problems(options)
    if options.early_stopping_method not in EARLY_STOPPING:
        yield _option_problem("early_stopping_method", "must be force or generate")
    yield from _find_extension_problems(options)
    guard = options.loop_guard
    if guard is not None and (guard.hint < 1 or guard.stop < 1):
        yield _option_problem("loop_guard", "must count at least 1 round")
    if guard is not None and max(guard.hint, guard.stop) > MAX_ROUNDS:
        yield _option_problem("loop_guard", f"must count at most {MAX_ROUNDS:,} rounds")
    if options.output_schema is not None:
        flaw = find_schema_problem(options.output_schema)
        if flaw is not None:
            yield SpecProblem("executor.output_schema", flaw)


def _find_extension_problems(options: ExecutorOptions) -> Iterator[SpecProblem]:
    for name, known in (
        ("output_parser", OUTPUT_PARSERS),
        ("parsing_error_handler", PARSING_ERROR_HANDLERS),
    ):
        selected = getattr(options, name)
        if selected is not None and selected not in known:
            text = f"{selected!r} is not registered by a module of AGENTSITE_EXTENSIONS"
            yield _option_problem(name, text)


def _find_limit_problems(options: ExecutorOptions) -> Iterator[SpecProblem]:
    rounds, seconds = options.max_iterations, options.max_execution_time
    if rounds is not None and rounds < 0:
        yield _option_problem(
            "max_iterations", "must be 0 or more, or empty for no limit"
        )
    if rounds is not None and rounds > MAX_ROUNDS:
        yield _option_problem(
            "max_iterations", f"must be at most {MAX_ROUNDS:,}, or empty"
        )
    if seconds is not None and not seconds >= 0:
        yield _option_problem(
            "max_execution_time", "must be 0 or more seconds, or empty"
        )
    if seconds is not None and seconds > MAX_EXECUTION_SECONDS:
        text = f"must be at most {MAX_EXECUTION_SECONDS:,} seconds (a week), or empty"
        yield _option_problem("max_execution_time", text)
    if options.observation_limit < 1:
        yield _option_problem("observation_limit", "must be at least 1 byte")
    if options.observation_limit > MAX_OBSERVATION_BYTES:
        yield _option_problem(
            "observation_limit", f"must be at most {MAX_OBSERVATION_BYTES:,} bytes"
        )
    if options.trim_intermediate_steps > MAX_ROUNDS:
        text = f"must be at most {MAX_ROUNDS:,}, or -1 for all"
        yield _option_problem("trim_intermediate_steps", text)
    yield from _find_context_problems(options)
    yield from _find_budget_problems(options)
    yield from _find_concurrency_problems(options)


def _find_context_problems(options: ExecutorOptions) -> Iterator[SpecProblem]:
    size = options.context_tokens
    if size is not None and size < 1:
        yield _option_problem("context_tokens", "must be at least 1, or empty")
    if size is not None and size > MAX_CONTEXT_TOKENS:
        yield _option_problem(
            "context_tokens", f"must be at most {MAX_CONTEXT_TOKENS:,}, or empty"
        )


def _find_concurrency_problems(options: ExecutorOptions) -> Iterator[SpecProblem]:
    most = options.max_concurrent_runs
    if most is not None and not 1 <= most <= MAX_CONCURRENT_RUNS:
        yield _option_problem(
            "max_concurrent_runs", f"must be 1 to {MAX_CONCURRENT_RUNS:,}, or empty"
        )


def _find_budget_problems(options: ExecutorOptions) -> Iterator[SpecProblem]:
    budget = options.budget
    if budget is None:
        return
    if budget.tokens is not None and budget.tokens < 0:
        yield _option_problem("budget.tokens", "must be 0 or more")
    if budget.tokens is not None and budget.tokens > MAX_BUDGET_TOKENS:
        yield _option_problem(
            "budget.tokens", f"must be at most {MAX_BUDGET_TOKENS:,}, or empty"
        )
    if budget.cost is not None and not budget.cost >= 0:
        yield _option_problem("budget.cost", "must be 0 or more")
    if budget.cost is not None and budget.cost > MAX_BUDGET_COST:
        yield _option_problem(
            "budget.cost", f"must be at most {MAX_BUDGET_COST:,}, or empty"
        )


def _option_problem(name: str, rule: str) -> SpecProblem:
    return SpecProblem(f"executor.{name}", f"{name} {rule}.")
