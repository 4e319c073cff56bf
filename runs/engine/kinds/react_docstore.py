"""Kind `react-docstore`: looks pages up with actions of the form `Name[input]`."""

from runs.engine.errors import ParseError
from runs.engine.kinds.kind import (
    Call,
    Decision,
    Kind,
    finish,
    observation_lines,
    tidy_before_observation,
)
from runs.engine.labels import labels_in
from runs.engine.react_lines import bracketed, end_of_first_action
from runs.engine.reading import input_text
from runs.engine.toolbox import Toolbox
from runs.engine.types import PromptSpec, Reply

TEMPLATE = """\
Answer the question by looking things up, one step at a time. These are the actions:

{tools}
Finish: ends the work; its input is the answer

Write two lines each time. The action is one of {tool_names} or Finish, with its input \
in square brackets:

Thought: what you look up next, and why
Action: Name[input]
Observation: what was found; it is written for you, so stop before this line

An example:

Question: On which continent lies the country whose capital is Windhoek?
Thought: I look for the country that has the capital Windhoek.
Action: Search[Windhoek]
Observation: Windhoek is the capital of Namibia, in southern Africa.
Thought: Namibia lies in Africa.
Action: Finish[Africa]

Question: {input}
{agent_scratchpad}"""

FORM = "Write `Action: Name[input]`, and `Action: Finish[answer]` when you know it."


def read(text: str, reply: Reply, toolbox: Toolbox) -> Decision:
    """Understand one reply."""
    labels = labels_in(text, frozenset({"action"}))
    action = next((label for label in labels if label.word == "action"), None)
    if action is None:
        raise ParseError(f"The reply has no action. {FORM}")
    behind = [label.start for label in labels if label.start > action.start]
    end = min([end_of_first_action(text, labels), *behind])
    segment = text[action.end : end].strip()
    parts = bracketed(segment.partition("\n")[0]) or bracketed(segment)
    if parts is None:
        raise ParseError(f"The action is not of the form. {FORM}", tried_action=True)
    if parts.name.casefold() == "finish":
        return finish(parts.input.strip(), text)
    return (Call(parts.name, input_text(parts.input)),)


KIND = Kind(
    name="react-docstore",
    title="ReAct over documents",
    summary="Looks up pages and words with actions like Search[page], then finishes.",
    prompt=PromptSpec(template=TEMPLATE),
    read=read,
    tidy=tidy_before_observation,
    as_text=observation_lines,
    stop=("\nObservation:",),
    reserved=("Finish",),
)
