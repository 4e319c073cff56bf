"""Kind `tool-calling`: the model's own function calls, several per reply (R9)."""

import json
from collections.abc import Iterator

from pydantic_core import from_json

from runs.engine.errors import ParseError
from runs.engine.kinds.kind import (
    AgentKind,
    Decision,
    ParsedCall,
    ScratchpadRound,
    build_finish,
)
from runs.engine.observations import stringify_value
from runs.engine.parsing.clean import MAX_DIGITS
from runs.engine.parsing.reply_text import decode_json, strip_thinking
from runs.engine.toolbox import Toolbox
from runs.engine.types import (
    AgentAction,
    AudioPart,
    ImagePart,
    Message,
    PromptMessage,
    PromptSpec,
    Reply,
    TextPart,
    ToolCall,
)
from tools.tool_name import build_function_name, strip_tool_name

SYSTEM = """\
You help people by answering their questions and doing what they ask.
Call functions where they help, several at once where they do not depend on each other.
When you know enough, answer in plain text."""


def parse_tool_calling_reply(text: str, reply: Reply, toolbox: Toolbox) -> Decision:
    """Parse a reply: calls to make, or a text that is the answer."""
    if reply.tool_calls:
        return tuple(_parse_tool_call(call) for call in reply.tool_calls)
    if not text.strip():
        raise ParseError("The reply is empty. Call a function or answer in plain text.")
    return build_finish(text, text)


def _parse_tool_call(call: ToolCall) -> ParsedCall:
    name = strip_tool_name(call.name)
    if not call.arguments.strip():
        return ParsedCall(name, {}, call.id)
    try:
        arguments = decode_json(call.arguments)
    except ValueError:
        return _build_invalid_call(call, name, "are not valid JSON")
    if arguments is None:
        return ParsedCall(name, {}, call.id)
    if not isinstance(arguments, dict):
        return _build_invalid_call(call, name, "are not a JSON object")
    return ParsedCall(name, arguments, call.id)


def _build_invalid_call(call: ToolCall, name: str, how: str) -> ParsedCall:
    problem = (
        f"The arguments of {name!r} {how}, so it was not called. "
        "Send one complete JSON object."
    )
    return ParsedCall(name, call.arguments, call.id, problem)


def render_tool_call_messages(shown: ScratchpadRound) -> tuple[Message, ...]:
    """Repeat a reply and give each of its calls its result."""
    if not shown.reply.tool_calls:
        said = (
            (Message.from_text("assistant", shown.text, native=shown.reply.native),)
            if shown.text.strip()
            else ()
        )
        message = (Message.from_text("user", step.observation) for step in shown.steps)
        return (*said, *message)
    asked = _build_assistant_message(shown)
    results = (
        Message.from_text(
            "tool", step.observation, tool_call_id=step.step.action.call_id
        )
        for step in shown.steps
    )
    return (asked, *results, *_build_media_messages(shown))


def _build_media_messages(shown: ScratchpadRound) -> Iterator[Message]:
    """Yield media of the results, which most formats take only from the user."""
    for step in shown.steps:
        name, media = step.step.action.tool, step.step.media
        if images := [one for one in media if isinstance(one, ImagePart)]:
            text = TextPart(text=f"The images that {name} returned, in their order:")
            yield Message(role="user", content=(text, *images))
        for sound in media:
            if isinstance(sound, AudioPart):
                text = TextPart(text=f"Sound {sound.number} that {name} returned:")
                yield Message(role="user", content=(text, sound))


def _build_assistant_message(shown: ScratchpadRound) -> Message:
    pairs = zip(shown.reply.tool_calls, shown.steps, strict=True)
    calls = tuple(_normalize_call(call, step.step.action) for call, step in pairs)
    native = shown.reply.native
    if not shown.text:
        return Message(role="assistant", tool_calls=calls, native=native)
    return Message.from_text("assistant", shown.text, tool_calls=calls, native=native)


def _normalize_call(call: ToolCall, action: AgentAction) -> ToolCall:
    """Return a call in a form that every model server accepts back."""
    name = build_function_name(call.name)
    arguments = call.arguments
    if not _is_object(arguments):
        arguments = stringify_value(
            {"unreadable": arguments} if arguments.strip() else {}
        )
    if (call.id, call.name, call.arguments) == (action.call_id, name, arguments):
        return call
    return ToolCall(id=action.call_id or "", name=name, arguments=arguments)


def _is_object(arguments: str) -> bool:
    if len(arguments) <= MAX_DIGITS:
        try:
            if isinstance(from_json(arguments), dict):
                return True
        except ValueError:
            pass  # this parser is faster than the other one
    try:
        return isinstance(json.loads(arguments), dict)
    except (ValueError, RecursionError):
        return False


KIND = AgentKind(
    name="tool-calling",
    title="Tool calling",
    summary="Uses native function calling, several calls at once; the best choice for "
    "models that support it.",
    prompt=PromptSpec(
        messages=(
            PromptMessage(role="system", template=SYSTEM),
            PromptMessage(role="user", template="{input}"),
        )
    ),
    parse_reply=parse_tool_calling_reply,
    tidy=strip_thinking,
    as_messages=render_tool_call_messages,
    needs_functions=True,
)
