"""The messages of a request, as the message of a run and the turns before it."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from runs.openai.bodies import InputMessage
from runs.openai.errors import OpenAiError
from runs.services.runs.start import EarlierTurn

TEXT_PARTS = ("text", "input_text", "output_text", "refusal")
OWN_ITEMS = ("reasoning", "mcp_call", "mcp_list_tools", "mcp_approval_request")
"""Items of a response that a client may send back: they say what an agent did."""


class MessageText(NamedTuple):
    is_user: bool
    text: str


class SplitMessages(NamedTuple):
    """The last message, and the turns before it."""

    message: str
    turns: list[EarlierTurn]


def split_messages(messages: Sequence[InputMessage], *, param: str) -> SplitMessages:
    """Return what the run is asked, and what was said before.

    The agent's instructions are its owner's: those of a caller are passed as a message
    of the user. Raises an `OpenAiError` that names the message.
    """
    said = list(_read_messages(messages, param))
    if not said or not said[-1].is_user:
        raise OpenAiError(
            "The last message must be one of the user.",
            code="invalid_value",
            param=param,
        )
    return SplitMessages(said[-1].text, list(build_turns_of(said[:-1])))


def build_turns_of(said: Iterable[MessageText]) -> Iterator[EarlierTurn]:
    """Yield a turn for each question with its answer, and for each one alone."""
    question: str | None = None
    for one in said:
        if not one.is_user:
            yield EarlierTurn(question, one.text)
            question = None
            continue
        if question is not None:
            yield EarlierTurn(question, None)
        question = one.text
    if question is not None:
        yield EarlierTurn(question, None)


def _read_messages(
    messages: Sequence[InputMessage], param: str
) -> Iterator[MessageText]:
    for number, message in enumerate(messages):
        where = f"{param}[{number}]"
        if message.type in OWN_ITEMS:
            continue
        if message.tool_calls or message.function_call:
            raise not_supported(f"{where}.tool_calls", "An agent calls its own tools.")
        if message.type != "message":
            raise not_supported(
                f"{where}.type",
                f"Items of the type {message.type[:60]!r} are not supported.",
            )
        text = "".join(_read_parts(message.content, where))
        match message.role:
            case "user" | "system" | "developer":
                yield MessageText(True, text)
            case "assistant":
                if text:
                    yield MessageText(False, text)
            case "tool" | "function":
                raise not_supported(f"{where}.role", "An agent calls its own tools.")
            case _:
                raise OpenAiError(
                    f"Invalid role {message.role[:60]!r}.",
                    code="invalid_value",
                    param=f"{where}.role",
                )


def _read_parts(
    content: str | list[dict[str, Any]] | None, where: str
) -> Iterator[str]:
    if content is None or isinstance(content, str):
        yield content or ""
        return
    for number, part in enumerate(content):
        kind = part.get("type")
        text = part.get("refusal" if kind == "refusal" else "text")
        if kind in TEXT_PARTS and isinstance(text, str):
            yield text
            continue
        raise not_supported(
            f"{where}.content[{number}]",
            f"Messages to agents contain text only, not {str(kind)[:60]!r}.",
        )


def not_supported(param: str, message: str) -> OpenAiError:
    return OpenAiError(message, code="unsupported_value", param=param)
