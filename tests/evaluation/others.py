"""Scores by the evaluators of others, in the environment that has them installed.

    python others.py < CASES.json > RESULTS.json

Each case is a list: the name of a function below, then its arguments.
"""

import asyncio
import json
import sys
from typing import Any

from agentevals.trajectory.match import create_trajectory_match_evaluator
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import (
    Target,
    answer,
    choice,
    exact,
    f1,
    includes,
    match,
    pattern,
)
from inspect_ai.solver import TaskState
from inspect_ai.solver._multiple_choice import (
    parse_answers,
    set_choices_based_on_generated_response,
)
from nltk.metrics.agreement import AnnotationTask
from rouge_score.rouge_scorer import RougeScorer

ROUGE = RougeScorer(["rougeL"], use_stemmer=False)


def ask(scorer: Any, said: str, target: str | list[str]) -> float:
    output = ModelOutput.from_content("model", said)
    state = TaskState("model", 1, 1, "", [], output=output)
    value = asyncio.run(scorer(state, Target(target))).value
    return {"C": 1.0, "I": 0.0}[value] if isinstance(value, str) else float(value)


def inspect_match(said: str, target: str | list[str], options: dict[str, Any]) -> float:
    return ask(match(**options), said, target)


def inspect_includes(said: str, target: str | list[str], ignore_case: bool) -> float:
    return ask(includes(ignore_case=ignore_case), said, target)


def inspect_pattern(said: str, target: str, regex: str) -> float:
    return ask(pattern(regex), said, target)


def inspect_answer(said: str, target: str, part: Any) -> float:
    return ask(answer(part), said, target)


def inspect_f1(said: str, target: str) -> float:
    return ask(f1(), said, target)


def inspect_exact(said: str, target: str) -> float:
    return ask(exact(), said, target)


def inspect_choice(said: str, target: str, choices: list[str]) -> float:
    """Score as after the solver `multiple_choice`, which reads the marked letter."""
    output = ModelOutput.from_content("model", said)
    state = TaskState("model", 1, 1, "", [], choices=choices, output=output)
    answers = parse_answers(state, multiple_correct=False)
    set_choices_based_on_generated_response(state, answers)
    return float(asyncio.run(choice()(state, Target(target))).value == "C")


def rouge(said: str, target: str) -> float:
    return float(ROUGE.score(target, said)["rougeL"].fmeasure)


def trajectory(
    made: list[Any], expected: list[Any], mode: Any, arguments: Any
) -> float:
    evaluate = create_trajectory_match_evaluator(
        trajectory_match_mode=mode, tool_args_match_mode=arguments
    )
    result: Any = evaluate(
        outputs=build_messages(made), reference_outputs=build_messages(expected)
    )
    return float(result["score"])


def kappa(one: list[str], other: list[str]) -> float:
    rows = [("one", place, label) for place, label in enumerate(one)]
    rows += [("other", place, label) for place, label in enumerate(other)]
    return float(AnnotationTask(rows).kappa())


def build_messages(calls: list[Any]) -> list[Any]:
    """Return one message for each call."""
    return [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {"function": {"name": tool, "arguments": json.dumps(arguments)}}
            ],
        }
        for tool, arguments in calls
    ]


if __name__ == "__main__":
    sys.stdout.write(
        json.dumps([globals()[name](*given) for name, *given in json.load(sys.stdin)])
    )
