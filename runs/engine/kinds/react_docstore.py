"""Kind `react-docstore`: looks pages up with actions of the form `Name[input]`."""

from runs.engine.errors import ParseError
from runs.engine.kinds.kind import (
    AgentKind,
    Decision,
    ParsedCall,
    build_finish,
    render_observation_lines,
    tidy_before_observation,
)
from runs.engine.kinds.react_lines import end_of_first_action, parse_bracketed_call
from runs.engine.parsing.labels import find_labels
from runs.engine.parsing.reply_text import unwrap_input
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

FORMAT_HINT = (
    "Write `Action: Name[input]`, and `Action: Finish[answer]` when you know it."
)


def parse_docstore_reply(text: str, reply: Reply, toolbox: Toolbox) -> Decision:
    labels = find_labels(text, frozenset({"action"}))
    action = next((label for label in labels if label.word == "action"), None)
    if action is None:
        raise ParseError(f"The reply has no action. {FORMAT_HINT}")
    behind = [label.start for label in labels if label.start > action.start]
    end = min([end_of_first_action(text, labels), *behind])
    segment = text[action.end : end].strip()
    parts = parse_bracketed_call(segment.partition("\n")[0]) or parse_bracketed_call(
        segment
    )
    if parts is None:
        raise ParseError(
            f"The action is not of the form. {FORMAT_HINT}", tried_action=True
        )
    if parts.name.casefold() == "finish":
        return build_finish(parts.input.strip(), text)
    return (ParsedCall(parts.name, unwrap_input(parts.input)),)


KIND = AgentKind(
    name="react-docstore",
    title="ReAct over documents",
    summary="Looks up pages and words with actions like Search[page], then finishes.",
    prompt=PromptSpec(template=TEMPLATE),
    parse_reply=parse_docstore_reply,
    tidy=tidy_before_observation,
    as_text=render_observation_lines,
    stop=("\nObservation:",),
    reserved=("Finish",),
)
