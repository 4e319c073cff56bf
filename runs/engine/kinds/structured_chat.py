"""Kind `structured-chat`: JSON objects whose inputs may have several fields."""

from runs.engine.kinds.json_actions import parse_json_reply
from runs.engine.kinds.kind import (
    AgentKind,
    Decision,
    render_observation_lines,
    tidy_json,
)
from runs.engine.toolbox import Toolbox
from runs.engine.types import PromptMessage, PromptSpec, Reply

SYSTEM = """\
Help as well and as exactly as you can. You can use these tools:

{tools}

Each of your replies ends in exactly one JSON object with the keys "action" and \
"action_input". The action is "Final Answer" or one of: {tool_names}. The input of a \
tool is an object with the arguments described above, or a text where it takes one text.

Question: what you are asked
Thought: what you know so far and what is still missing
Action:
```json
{{"action": "name of the tool", "action_input": {{"argument": "value"}}}}
```
Observation: what the tool answered; it is written for you, so stop before this line
(Thought, Action and Observation as often as needed)
Thought: nothing is missing any more
Action:
```json
{{"action": "Final Answer", "action_input": "the answer for the person"}}
```"""

USER = """\
{input}

{agent_scratchpad}
(Reply with one JSON object, whatever happens.)"""


def parse_structured_chat_reply(text: str, reply: Reply, toolbox: Toolbox) -> Decision:
    return parse_json_reply(text)


KIND = AgentKind(
    name="structured-chat",
    title="Structured chat",
    summary="Writes every step as a JSON object whose input may have several fields.",
    prompt=PromptSpec(
        messages=(
            PromptMessage(role="system", template=SYSTEM),
            PromptMessage(role="user", template=USER),
        )
    ),
    parse_reply=parse_structured_chat_reply,
    tidy=tidy_json,
    as_text=render_observation_lines,
    stop=("\nObservation:",),
    reserved=("Final Answer",),
)
