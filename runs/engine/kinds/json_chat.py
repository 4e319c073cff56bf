"""Kind `json-chat`: a chat in which every reply of the model is one JSON object."""

from runs.engine.kinds.chat_results import render_chat_results
from runs.engine.kinds.json_actions import parse_json_reply
from runs.engine.kinds.kind import AgentKind, Decision, tidy_json
from runs.engine.toolbox import Toolbox
from runs.engine.types import PromptMessage, PromptSpec, Reply

SYSTEM = """\
You answer questions and do tasks, and may look things up with tools before you answer.
These are the tools:

{tools}

Every reply is one JSON object and nothing else. To use a tool:

```json
{{"action": "one of: {tool_names}", "action_input": "what the tool gets"}}
```

To answer the person:

```json
{{"action": "Final Answer", "action_input": "your answer"}}
```"""


def parse_json_chat_reply(text: str, reply: Reply, toolbox: Toolbox) -> Decision:
    return parse_json_reply(text)


KIND = AgentKind(
    name="json-chat",
    title="JSON chat",
    summary="Replies in JSON objects; tool results are separate messages.",
    prompt=PromptSpec(
        messages=(
            PromptMessage(role="system", template=SYSTEM),
            PromptMessage(role="user", template="{input}"),
        )
    ),
    parse_reply=parse_json_chat_reply,
    tidy=tidy_json,
    as_messages=render_chat_results,
    stop=("\nObservation:",),
    reserved=("Final Answer",),
)
