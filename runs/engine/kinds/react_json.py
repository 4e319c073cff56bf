"""Kind `react-json`: thoughts in plain text, each action as a JSON object."""

from runs.engine.kinds.json_actions import parse_json_reply
from runs.engine.kinds.kind import (
    AgentKind,
    Decision,
    render_observation_lines,
    tidy_json,
)
from runs.engine.parsing.reply_text import strip_code_fence
from runs.engine.toolbox import Toolbox
from runs.engine.types import PromptMessage, PromptSpec, Reply

SYSTEM = """\
Work out the answer to a question. You can use these tools:

{tools}

To use a tool, write one JSON object with the keys "action" (one of: {tool_names}) and \
"action_input". One object a reply, never a list. Write in this form:

Thought: what you know so far and what is still missing
Action:
```json
{{"action": "name of the tool", "action_input": "what the tool gets"}}
```
Observation: what the tool answered; it is written for you, so stop before this line
(Thought, Action and Observation as often as needed)
Thought: nothing is missing any more
Final Answer: the answer to the question"""

USER = """\
Question: {input}
{agent_scratchpad}"""


def parse_react_json_reply(text: str, reply: Reply, toolbox: Toolbox) -> Decision:
    return parse_json_reply(strip_code_fence(text), label_ends=True)


KIND = AgentKind(
    name="react-json",
    title="ReAct with JSON actions",
    summary="Thinks in words and acts in JSON objects; for chat models that write "
    "JSON well.",
    prompt=PromptSpec(
        messages=(
            PromptMessage(role="system", template=SYSTEM),
            PromptMessage(role="user", template=USER),
        )
    ),
    parse_reply=parse_react_json_reply,
    tidy=tidy_json,
    as_text=render_observation_lines,
    stop=("\nObservation:",),
    reserved=("Final Answer",),
)
