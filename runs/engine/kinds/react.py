"""Kind `react`: thoughts, actions and observations as labelled lines of one text."""

from runs.engine.kinds.kind import (
    Decision,
    Kind,
    observation_lines,
    tidy_before_observation,
)
from runs.engine.react_lines import read_lines
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


def read(text: str, reply: Reply, toolbox: Toolbox) -> Decision:
    """Understand one reply."""
    return read_lines(text, toolbox, answer="answer", answer_label="Final Answer:")


KIND = Kind(
    name="react",
    title="ReAct",
    summary="Thinks, acts and observes in labelled lines; works with every text model.",
    prompt=PromptSpec(template=TEMPLATE),
    read=read,
    tidy=tidy_before_observation,
    as_text=observation_lines,
    stop=("\nObservation:",),
)
