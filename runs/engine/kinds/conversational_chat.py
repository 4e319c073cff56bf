"""Kind `conversational-chat`: a conversation with memory, in JSON objects."""

from runs.engine.kinds.chat_results import render_chat_results
from runs.engine.kinds.json_actions import parse_json_reply
from runs.engine.kinds.kind import AgentKind, Decision, tidy_json
from runs.engine.toolbox import Toolbox
from runs.engine.types import PromptMessage, PromptSpec, Reply

SYSTEM = """\
You talk with a person, help with what they ask, and remember what was said before.
Where it helps you may use one of these tools first:

{tools}

Write each reply as one JSON object. Its "action" is one of: {tool_names}, with the \
tool's input as "action_input":

```json
{{"action": "name of the tool", "action_input": "what the tool gets"}}
```

or, to say something to the person:

```json
{{"action": "Final Answer", "action_input": "what you say"}}
```"""


def parse_conversational_chat_reply(
    text: str, reply: Reply, toolbox: Toolbox
) -> Decision:
    return parse_json_reply(text)


KIND = AgentKind(
    name="conversational-chat",
    title="Conversational chat",
    summary="Holds a conversation over several turns in JSON objects, with tools.",
    prompt=PromptSpec(
        messages=(
            PromptMessage(role="system", template=SYSTEM),
            PromptMessage(role="user", template="{chat_history}"),
            PromptMessage(role="user", template="{input}"),
        )
    ),
    parse_reply=parse_conversational_chat_reply,
    tidy=tidy_json,
    as_messages=render_chat_results,
    stop=("\nObservation:",),
    reserved=("Final Answer",),
)
