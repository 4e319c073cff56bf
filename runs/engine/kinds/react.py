"""Kind `react`: thoughts, actions and observations as labeled lines of one text."""

from runs.engine.kinds.kind import (
    AgentKind,
    Decision,
    render_observation_lines,
    tidy_before_observation,
)
from runs.engine.kinds.react_lines import parse_react_lines
from runs.engine.toolbox import Toolbox
from runs.engine.types import PromptSpec, Reply

TEMPLATE = """\
Work out the answer to the question below. You can use these tools:

{tools}

Write exactly in this form, one label a line:

Thought: what you know so far and what is still missing
Action: the name of one tool, out of: {tool_names}
Action Input: what the tool gets
Observation: what the tool answered; it is written for you, so stop before this line
(Thought, Action, Action Input and Observation as often as needed)
Thought: nothing is missing any more
Final Answer: the answer to the question

Question: {input}
{agent_scratchpad}"""


def parse_react_reply(text: str, reply: Reply, toolbox: Toolbox) -> Decision:
    return parse_react_lines(
        text, toolbox, answer="answer", answer_label="Final Answer:"
    )


KIND = AgentKind(
    name="react",
    title="ReAct",
    summary="Thinks, acts and observes in labeled lines; works with every text model.",
    prompt=PromptSpec(template=TEMPLATE),
    parse_reply=parse_react_reply,
    tidy=tidy_before_observation,
    as_text=render_observation_lines,
    stop=("\nObservation:",),
)
