"""The library of prompts to begin with."""

import pytest

from runs.engine.kinds.registry import AGENT_KINDS
from runs.engine.spec_validation import find_spec_problems
from runs.engine.types import AgentSpec
from runs.services.spec.starting_prompts import (
    get_starting_prompt,
    list_starting_prompts,
)
from tests.fakes.model_server import model_server
from tests.make import make_prompt
from tests.worker.run_parts import agent_on, executed

CLASSIC = """\
You may use these tools:

{tools}

Thought: think about it
Action: one of [{tool_names}]
Action Input: what goes in
Observation: what comes out
Final Answer: the end

Question: {input}
Thought:{agent_scratchpad}"""


@pytest.mark.parametrize("name", AGENT_KINDS)
def test_every_kind_has_its_own_prompt_and_two_more_that_run(name):
    kind = AGENT_KINDS[name]
    choices = list_starting_prompts(kind)

    assert choices[0].prompt == kind.prompt
    assert len({one.prompt.model_dump_json() for one in choices}) == 3
    problems = [
        problem
        for one in choices
        for problem in find_spec_problems(AgentSpec(kind=name, prompt=one.prompt))
        if problem.field.startswith("prompt")
    ]
    assert problems == []


def test_an_unknown_name_begins_with_the_plain_one():
    assert (
        get_starting_prompt("react", "no such")
        == list_starting_prompts(AGENT_KINDS["react"])[0]
    )


@pytest.mark.django_db(transaction=True)
def test_a_prompt_in_the_classic_format_runs_as_it_is():
    script = ['Action: add\nAction Input: {"a": 1, "b": 2}', "Final Answer: 3"]
    with model_server(script=script) as server:
        prompt = make_prompt(kind="react", template=CLASSIC)
        agent = agent_on(server, "add", kind="react", prompt=prompt)
        run = executed(agent, "What is {tools}?")

    message = server.requests[1].body["messages"][0]["content"]
    assert (run.status, run.output) == ("succeeded", "3")
    assert "Action: one of [add]" in message
    assert "Question: What is {tools}?\n" in message
    assert message.split("Question:")[1].endswith("Observation: 3\nThought:")
