"""Kind `conversational-chat`: a talk with memory, in JSON objects."""

from runs.engine.json_actions import read_json
from runs.engine.kinds.chat_results import results_in_chat
from runs.engine.kinds.kind import Decision, Kind, tidy_json
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


def read(text: str, reply: Reply, toolbox: Toolbox) -> Decision:
    """Understand one reply."""
    return read_json(text)


KIND = Kind(
    name="conversational-chat",
    title="Conversational chat",
    summary="Talks with a person over several turns in JSON objects, with tools.",
    prompt=PromptSpec(
        messages=(
            PromptMessage(role="system", template=SYSTEM),
            PromptMessage(role="user", template="{chat_history}"),
            PromptMessage(role="user", template="{input}"),
        )
    ),
    read=read,
    tidy=tidy_json,
    as_messages=results_in_chat,
    stop=("\nObservation:",),
    reserved=("Final Answer",),
)
