"""Kind `tool-calling`: the model's own function calls, several in one reply (R9)."""

import json
import re
from functools import lru_cache
from typing import Any

from pydantic_core import from_json

from runs.engine.clean import MAX_DIGITS
from runs.engine.errors import ParseError
from runs.engine.kinds.kind import Call, Decision, Kind, ShownRound, finish
from runs.engine.observations import text_of
from runs.engine.reading import decode_whole, without_thinking
from runs.engine.toolbox import Toolbox, stripped_name
from runs.engine.types import (
    AgentAction,
    Message,
    PromptMessage,
    PromptSpec,
    Reply,
    ToolCall,
)

_NO_NAME = re.compile(r"[^a-zA-Z0-9_-]")

SYSTEM = """\
You help people by answering their questions and doing what they ask.
Call functions where they help, several at once where they do not depend on each other.
When you know enough, answer in plain text."""


def read(text: str, reply: Reply, toolbox: Toolbox) -> Decision:
    """Understand one reply: calls to make, or a text that is the answer."""
    if reply.tool_calls:
        return tuple(_call(call) for call in reply.tool_calls)
    if not text.strip():
        raise ParseError("The reply is empty. Call a function or answer in plain text.")
    return finish(text, text)


def _call(call: ToolCall) -> Call:
    name = stripped_name(call.name)
    if not call.arguments.strip():
        return Call(name, {}, call.id)
    try:
        arguments = decode_whole(call.arguments)
    except ValueError:
        return _broken(call, name, "are not valid JSON")
    if arguments is None:
        return Call(name, {}, call.id)
    if not isinstance(arguments, dict):
        return _broken(call, name, "are not a JSON object")
    return Call(name, arguments, call.id)


def _broken(call: ToolCall, name: str, how: str) -> Call:
    problem = (
        f"The arguments of {name!r} {how}, so it was not called. "
        "Send one complete JSON object."
    )
    return Call(name, call.arguments, call.id, problem)


def as_messages(shown: ShownRound) -> tuple[Message, ...]:
    """Repeat a reply and give each of its calls its result."""
    if not shown.reply.tool_calls:
        said = (Message.of("assistant", shown.text),) if shown.text.strip() else ()
        told = (Message.of("user", step.observation) for step in shown.steps)
        return (*said, *told)
    asked = _asked(shown)
    results = (
        Message.of("tool", step.observation, tool_call_id=step.step.action.call_id)
        for step in shown.steps
    )
    return (asked, *results)


def _asked(shown: ShownRound) -> Message:
    pairs = zip(shown.reply.tool_calls, shown.steps, strict=True)
    calls = tuple(_repeated(call, step.step.action) for call, step in pairs)
    same = calls == shown.reply.tool_calls and shown.text == shown.reply.text
    more: dict[str, Any] = {"native": shown.reply.native} if same else {}
    if not shown.text:
        return Message(role="assistant", tool_calls=calls, **more)
    return Message.of("assistant", shown.text, tool_calls=calls, **more)


def _repeated(call: ToolCall, action: AgentAction) -> ToolCall:
    """Return a call in a form that every model server takes back."""
    name = _name(call.name)
    arguments = call.arguments
    if not _is_object(arguments):
        arguments = text_of({"unreadable": arguments} if arguments.strip() else {})
    if (call.id, call.name, call.arguments) == (action.call_id, name, arguments):
        return call
    return ToolCall(id=action.call_id or "", name=name, arguments=arguments)


@lru_cache(maxsize=1_024)
def _name(asked: str) -> str:
    return _NO_NAME.sub("_", asked)[:64] or "_"


def _is_object(arguments: str) -> bool:
    if len(arguments) <= MAX_DIGITS:
        try:
            if isinstance(from_json(arguments), dict):
                return True
        except ValueError:
            pass  # the quick reader takes less than the other one
    try:
        return isinstance(json.loads(arguments), dict)
    except (ValueError, RecursionError):
        return False


KIND = Kind(
    name="tool-calling",
    title="Tool calling",
    summary="Uses the model's own function calls, several at once; the best choice "
    "for models that have them.",
    prompt=PromptSpec(
        messages=(
            PromptMessage(role="system", template=SYSTEM),
            PromptMessage(role="user", template="{input}"),
        )
    ),
    read=read,
    tidy=without_thinking,
    as_messages=as_messages,
    needs_functions=True,
)
