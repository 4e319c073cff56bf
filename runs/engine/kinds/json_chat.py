"""Kind `json-chat`: a chat in which every reply of the model is one JSON object."""

from runs.engine.json_actions import read_json
from runs.engine.kinds.chat_results import results_in_chat
from runs.engine.kinds.kind import Decision, Kind, tidy_json
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


def read(text: str, reply: Reply, toolbox: Toolbox) -> Decision:
    """Understand one reply."""
    return read_json(text)


KIND = Kind(
    name="json-chat",
    title="JSON chat",
    summary="Chats in JSON objects; results come back as messages of their own.",
    prompt=PromptSpec(
        messages=(
            PromptMessage(role="system", template=SYSTEM),
            PromptMessage(role="user", template="{input}"),
        )
    ),
    read=read,
    tidy=tidy_json,
    as_messages=results_in_chat,
    stop=("\nObservation:",),
    reserved=("Final Answer",),
)
