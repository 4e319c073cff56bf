"""What is wrong with a spec, by field, before it runs."""

import pytest

from runs.engine.kinds.registry import AGENT_KINDS
from runs.engine.spec_validation import (
    find_spec_problems,
    find_start_failure,
    find_tool_name_problem,
)
from runs.engine.types import Budget, LoopGuard, PromptMessage, PromptSpec
from tests.engine.make import drive, make_spec, make_tool
from tools.tool_name import build_function_name

PAD = "{input} {agent_scratchpad}"
RISKY = {"type": "object", "properties": {"a": {"pattern": "(a+)+b"}}}


@pytest.mark.parametrize("kind", sorted(AGENT_KINDS))
def test_every_kind_runs_with_its_own_prompt(kind):
    assert find_spec_problems(make_spec(kind)) == []


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        pytest.param(make_spec("magic"), "kind", id="unknown kind"),
        pytest.param(make_spec(prompt=PromptSpec()), "prompt", id="empty prompt"),
        pytest.param(
            make_spec(prompt=PromptSpec(template=PAD, messages=())),
            "prompt",
            id="template and messages",
        ),
        pytest.param(
            make_spec(prompt=PromptSpec(template="{input}")),
            "prompt",
            id="no place for the steps",
        ),
        pytest.param(
            make_spec(prompt=PromptSpec(template=f"{PAD} {{a.b}}")),
            "prompt.template",
            id="bad variable",
        ),
        pytest.param(
            make_spec(
                prompt=PromptSpec(
                    messages=(
                        PromptMessage(role="system", template="{}"),
                        PromptMessage(role="user", template=PAD),
                    )
                )
            ),
            "prompt.messages.0",
            id="bad variable in a message",
        ),
        pytest.param(
            make_spec(tools=[make_tool(), make_tool()]), "tools.1.name", id="same name"
        ),
        pytest.param(make_spec(tools=[make_tool("")]), "tools.0.name", id="no name"),
        pytest.param(
            make_spec(tools=[make_tool("`x`")]), "tools.0.name", id="name in marks"
        ),
        pytest.param(
            make_spec(tools=[make_tool("a[b")]), "tools.0.name", id="bracket in name"
        ),
        pytest.param(
            make_spec(tools=[make_tool("x" * 65)]), "tools.0.name", id="long name"
        ),
        pytest.param(
            make_spec(tools=[make_tool("_Exception")]), "tools.0.name", id="reserved"
        ),
        pytest.param(
            make_spec("json-chat", tools=[make_tool("final answer")]),
            "tools.0.name",
            id="reserved by the kind",
        ),
        pytest.param(
            make_spec(tools=[make_tool(args_schema={"type": "nonsense"})]),
            "tools.0.args_schema",
            id="bad schema",
        ),
        pytest.param(
            make_spec(tools=[make_tool(args_schema=RISKY)]),
            "tools.0.args_schema",
            id="pattern without end",
        ),
        pytest.param(make_spec("self-ask", tools=[]), "tools", id="no tool"),
        pytest.param(
            make_spec(max_iterations=-1), "executor.max_iterations", id="rounds"
        ),
        pytest.param(
            make_spec(max_execution_time=-0.5), "executor.max_execution_time", id="time"
        ),
        pytest.param(
            make_spec(max_execution_time=float("nan")),
            "executor.max_execution_time",
            id="no time at all",
        ),
        pytest.param(
            make_spec(early_stopping_method="explode"),
            "executor.early_stopping_method",
            id="early stopping",
        ),
        pytest.param(
            make_spec(observation_limit=0), "executor.observation_limit", id="limit"
        ),
        pytest.param(make_spec(context_tokens=0), "executor.context_tokens", id="size"),
        pytest.param(
            make_spec(loop_guard=LoopGuard(hint=0)), "executor.loop_guard", id="guard"
        ),
        pytest.param(
            make_spec(budget=Budget(tokens=-1)), "executor.budget.tokens", id="tokens"
        ),
        pytest.param(
            make_spec(budget=Budget(cost=-1)), "executor.budget.cost", id="cost"
        ),
        pytest.param(
            make_spec(output_schema={"type": 7}), "executor.output_schema", id="output"
        ),
    ],
)
def test_a_problem_names_its_field(spec, field):
    problems = find_spec_problems(spec)

    assert [problem.field for problem in problems] == [field]
    assert problems[0].message.endswith(".")


def test_valid_budgets_and_schemas_pass():
    spec = make_spec(
        budget=Budget(tokens=1, cost=0.5), output_schema={"type": "object"}
    )

    assert find_spec_problems(spec) == []


def test_all_problems_are_reported_at_once():
    driven = drive(make_spec(max_iterations=-1, early_stopping_method="no"), [])

    assert driven.effects == []
    assert driven.result.status == "failed"
    assert "max_iterations" in driven.result.error.message
    assert "early_stopping_method" in driven.result.error.message


def test_missing_inputs_are_named():
    prompt = PromptSpec(template=f"{PAD} {{city}} {{day}}", partials={"day": "today"})

    refusal = find_start_failure(make_spec(prompt=prompt), {"input": "q"})

    assert refusal.error.code == "inputs"
    assert (
        refusal.error.message
        == "The inputs do not contain variables of the prompt: city."
    )


@pytest.mark.parametrize("kind", [None, *AGENT_KINDS])
@pytest.mark.parametrize("name", ["get_user-2", "Intermediate Answer", "查询天气"])
def test_a_tool_has_any_name_in_any_kind(name, kind):
    found = find_tool_name_problem(name, AGENT_KINDS[kind] if kind else None)

    assert found is None


@pytest.mark.parametrize(
    "name", ["", "a" * 65, " a", "a\nb", "a[b]", "“a”", "a\x00b", "a()", "\u200ba"]
)
def test_a_name_that_no_reply_could_hold_is_refused(name):
    assert "is not a valid tool name" in (find_tool_name_problem(name) or "")


def test_two_names_that_are_one_function_are_refused():
    tools = (make_tool(name="a b"), make_tool(name=build_function_name("a b")))

    found = find_spec_problems(make_spec("tool-calling", tools=tools))

    assert [problem.field for problem in found] == ["tools.1.name"]


@pytest.mark.parametrize(
    ("options", "field"),
    [
        pytest.param({"max_iterations": 10**12}, "max_iterations", id="rounds"),
        pytest.param({"max_execution_time": 1e9}, "max_execution_time", id="time"),
        pytest.param(
            {"max_execution_time": float("inf")}, "max_execution_time", id="for ever"
        ),
        pytest.param({"context_tokens": 10**12}, "context_tokens", id="context"),
        pytest.param({"observation_limit": 10**12}, "observation_limit", id="seen"),
        pytest.param(
            {"trim_intermediate_steps": 10**12}, "trim_intermediate_steps", id="shown"
        ),
        pytest.param({"budget": Budget(tokens=10**30)}, "budget.tokens", id="tokens"),
        pytest.param({"budget": Budget(cost=1e12)}, "budget.cost", id="cost"),
        pytest.param({"loop_guard": LoopGuard(stop=10**9)}, "loop_guard", id="loop"),
    ],
)
def test_an_excessive_limit_is_refused_with_the_maximum(options, field):
    (problem,) = find_spec_problems(make_spec(**options))

    assert problem.field == f"executor.{field}"
    assert " at most " in problem.message
