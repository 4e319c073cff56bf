"""Request bodies of the OpenAI-compatible endpoints.

What an agent's owner decides (sampling, lengths) is accepted and has no effect; what
would change the meaning of the answer, such as tools of the caller, is refused by name,
as is what nobody knows.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from runs.openai.errors import OpenAiError, unsupported_parameter

DECIDED_BY_AGENT = {
    "frequency_penalty",
    "logit_bias",
    "max_completion_tokens",
    "max_output_tokens",
    "max_tokens",
    "parallel_tool_calls",
    "presence_penalty",
    "reasoning_effort",
    "seed",
    "stop",
    "temperature",
    "top_p",
    "truncation",
    "verbosity",
}
BOOKKEEPING = {
    "include",
    "prediction",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "safety_identifier",
    "service_tier",
    "store",
    "user",
}
WITHOUT_EFFECT = DECIDED_BY_AGENT | BOOKKEEPING
"""Parameters that are accepted, and change nothing."""

OWN_TOOLS = (
    "An agent calls only its own tools. Leave `{name}` out; in a chat program, switch "
    "its tools off for this model."
)
UNSUPPORTED = {
    "n": "An agent gives one answer. Leave `n` out.",
    "tools": OWN_TOOLS,
    "functions": OWN_TOOLS,
    "tool_choice": OWN_TOOLS,
    "function_call": OWN_TOOLS,
    "max_tool_calls": "The agent limits its own tool calls. Leave `{name}` out.",
    "response_format": "The agent decides the format of its answer. Leave it out.",
    "text.format": "The agent decides the format of its answer. Leave it out.",
    "logprobs": "Log probabilities are not available. Leave `logprobs` out.",
    "top_logprobs": "Log probabilities are not available. Leave `{name}` out.",
    "modalities": "Agents answer with text only. Leave `modalities` out.",
    "audio": "Agents answer with text only. Leave `audio` out.",
    "web_search_options": OWN_TOOLS,
    "prompt": "The agent has its own prompt. Leave `prompt` out.",
    "conversation": "Conversations are not available. Use `previous_response_id`.",
}
HARMLESS: dict[str, tuple[Any, ...]] = {
    "n": (1,),
    "tools": ([],),
    "functions": ([],),
    "tool_choice": ("auto", "none"),
    "function_call": ("auto", "none"),
    "response_format": ({"type": "text"},),
    "text.format": ({"type": "text"},),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "modalities": (["text"],),
}
"""Values that ask for what an agent does anyway."""


class Part(BaseModel):
    """A body or a part of one; which unknown fields are refused is checked later."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)


class InputMessage(Part):
    """A message; clients send answers back with all the fields they had."""

    role: str = ""
    type: str = "message"
    content: str | list[dict[str, Any]] | None = None
    tool_calls: list[Any] | None = None
    function_call: Any = None


class StreamOptions(Part):
    include_usage: bool | None = None


class EndpointBody(Part):
    """What both endpoints take."""

    model: str
    metadata: dict[str, str] | None = None
    """Variables of the agent besides the message."""
    stream: bool | None = None
    stream_options: StreamOptions | None = None

    @property
    def variables(self) -> dict[str, str]:
        return self.metadata or {}


class ChatBody(EndpointBody):
    """The body of `POST /v1/chat/completions`."""

    messages: list[InputMessage] = Field(min_length=1)
    include_reasoning: bool | None = None
    """Whether to send what the agent does meanwhile, as `reasoning_content`."""

    @property
    def includes_usage(self) -> bool:
        return bool(self.stream_options and self.stream_options.include_usage)


class ReasoningOptions(Part):
    effort: str | None = None
    summary: Literal["auto", "concise", "detailed"] | None = None
    generate_summary: str | None = None


class TextOptions(Part):
    format: Any = None
    verbosity: str | None = None


class ResponsesBody(EndpointBody):
    """The body of `POST /v1/responses`."""

    input: str | list[InputMessage]
    instructions: str | None = None
    previous_response_id: str | None = None
    background: bool | None = None
    reasoning: ReasoningOptions | None = None
    text: TextOptions | None = None

    @property
    def wants_steps(self) -> bool:
        return bool(self.reasoning and self.reasoning.summary)


def check_parameters(body: EndpointBody) -> None:
    """Raise an `OpenAiError` for a parameter that cannot be followed."""
    for name, value in (body.model_extra or {}).items():
        if value is None or name in WITHOUT_EFFECT:
            continue
        if name not in UNSUPPORTED:
            raise OpenAiError(
                f"Unrecognized request argument supplied: {name[:100]}.",
                code="unknown_parameter",
                param=name[:100],
            )
        check_unsupported(name, value)
    if isinstance(body, ResponsesBody) and body.text and body.text.format is not None:
        check_unsupported("text.format", body.text.format)


def check_unsupported(name: str, value: object) -> None:
    if value not in HARMLESS.get(name, ()):
        raise unsupported_parameter(name, UNSUPPORTED[name].format(name=name))
