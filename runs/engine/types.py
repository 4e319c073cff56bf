"""The types of the agent loop: messages, actions, steps, and the spec of a run.

All of them are frozen and serialize to the JSON that is stored.
"""

from dataclasses import dataclass, field
from hashlib import sha256
from json.encoder import encode_basestring as _quoted
from typing import Any, Literal, Self, assert_never

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    SkipValidation,
    model_validator,
)

from runs.engine.parsing.clean import clean_text
from tools.spec import ToolSpec


class FrozenModel(BaseModel):
    """A value: immutable, compared by content; unknown fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class TextPart(FrozenModel):
    type: Literal["text"] = "text"
    text: str


class ImagePart(FrozenModel):
    """An image of a tool's result; only in messages of the user."""

    type: Literal["image"] = "image"
    media_type: str
    data: str = Field(repr=False)
    """Base64."""

    @property
    def url(self) -> str:
        return f"data:{self.media_type};base64,{self.data}"

    @property
    def tokens(self) -> int:
        return IMAGE_TOKENS


class AudioPart(FrozenModel):
    """A sound of a tool's result; only in messages of the user."""

    type: Literal["audio"] = "audio"
    format: str
    """`wav` or `mp3`."""
    data: str = Field(repr=False)
    """Base64."""
    number: int
    """Its place in the result, as the text of the result names it."""

    @property
    def tokens(self) -> int:
        return len(self.data) // AUDIO_CHARACTERS


MediaPart = ImagePart | AudioPart

IMAGE_TOKENS = 1_500
"""What an image counts as when tokens are estimated; models differ."""

AUDIO_CHARACTERS = 1_000
"""Base64 characters of a sound that count as one token; about 1/40 s of speech."""


class ToolCall(FrozenModel):
    """A call in the provider's function-calling format."""

    id: str
    name: str
    arguments: str
    """The raw text from the model; usually JSON."""


Role = Literal["system", "user", "assistant", "tool"]


class Message(FrozenModel):
    """A message of a request; serialized once, for both digest and body."""

    role: Role
    content: tuple[TextPart | MediaPart, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    native: dict[str, Any] | None = None
    """The provider's own assembled message, whose reasoning adapters send back."""

    @classmethod
    def from_text(cls, role: Role, text: str, **more: Any) -> "Message":
        return cls.model_validate({"role": role, "content": ({"text": text},), **more})

    @property
    def text(self) -> str:
        """All text parts, joined."""
        if len(self.content) == 1 and isinstance(first := self.content[0], TextPart):
            return first.text
        return "".join(one.text for one in self.content if isinstance(one, TextPart))

    @property
    def media(self) -> tuple[MediaPart, ...]:
        return tuple(one for one in self.content if not isinstance(one, TextPart))

    @property
    def size(self) -> int:
        """Bytes from which its tokens are estimated."""
        unread = sum(len(one.data) - 4 * one.tokens for one in self.media)
        return max(len(self.canonical) - unread, 0)

    @property
    def canonical(self) -> bytes:
        """Canonical JSON in the Chat Completions shape, UTF-8; computed once.

        Lone surrogates, which UTF-8 cannot encode, become U+FFFD.
        """
        # Not a cached_property: that takes a lock in Python 3.11.
        known: bytes | None = self.__dict__.get("_canonical")
        if known is None:
            known = self.__dict__["_canonical"] = self._serialize()
        return known

    def _serialize(self) -> bytes:
        text, more = self.text, ""
        said = _quoted(text) if text or not self.tool_calls else "null"
        if self.media:
            said = f"[{','.join(map(_canonical_part, self.content))}]"
        if self.tool_calls:
            calls = ",".join(map(_canonical_call, self.tool_calls))
            more = f',"tool_calls":[{calls}]'
        if self.tool_call_id is not None:
            more += f',"tool_call_id":{_quoted(self.tool_call_id)}'
        whole = f'{{"role":"{self.role}","content":{said}{more}}}'
        try:
            return whole.encode()
        except UnicodeEncodeError:
            return clean_text(whole).encode()

    @property
    def digest(self) -> bytes:
        """SHA-256 of the canonical JSON."""
        return sha256(self.canonical).digest()


def _canonical_part(part: TextPart | MediaPart) -> str:
    match part:
        case TextPart():
            return f'{{"type":"text","text":{_quoted(part.text)}}}'
        case ImagePart():
            return f'{{"type":"image_url","image_url":{{"url":{_quoted(part.url)}}}}}'
        case AudioPart():
            sound = f'{{"data":{_quoted(part.data)},"format":{_quoted(part.format)}}}'
            return f'{{"type":"input_audio","input_audio":{sound}}}'
        case _:
            assert_never(part)


def _canonical_call(call: ToolCall) -> str:
    called = f'{{"name":{_quoted(call.name)},"arguments":{_quoted(call.arguments)}}}'
    return f'{{"id":{_quoted(call.id)},"type":"function","function":{called}}}'


class Usage(FrozenModel):
    """Tokens of one model call, as counted by the provider."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """Part of the input that the provider had cached."""
    reasoning_tokens: int = 0
    """Part of the output that was reasoning."""


TRUNCATED = "length"
"""The finish reason of a reply that the token limit cut off."""


class Reply(FrozenModel):
    """A complete reply of a model, independent of the wire format."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""
    """Reasoning that the provider sent apart from the answer; never parsed."""
    finish_reason: str = ""
    """The provider's value: stop, length, tool_calls, content_filter …"""
    usage: Usage | None = None
    model: str = ""
    """The model that replied, as named by the provider."""
    native: dict[str, Any] | None = None
    """The assembled provider message, with unknown fields."""


class ModelSettings(FrozenModel):
    """Which model, of which provider, with which parameters."""

    model: str = ""
    provider: str = ""
    """Slug of the provider; its address and key are looked up at call time."""
    provider_id: int | None = None
    parameters: dict[str, Any] = {}
    """Sent unchanged: temperature, max_tokens, top_p, seed …"""
    stream: bool = True
    images: bool = False
    """Whether the model reads images in results of tools."""
    audio: bool = False
    """Whether it takes sounds in results of tools."""


@dataclass
class HashedMessages:
    """How many messages of a run were hashed, so that each is hashed once."""

    messages: tuple[Message, ...] = field(default=(), compare=False)
    state: Any = field(default=None, compare=False, repr=False)
    """The SHA-256 object that took their digests."""


class ModelRequest(FrozenModel):
    """Everything one model call sends, before any provider's wire format."""

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    stop: tuple[str, ...] = ()
    """Stop words; sent if accepted, enforced by the engine in any case."""
    settings: ModelSettings = ModelSettings()
    output_schema: dict[str, Any] | None = None
    _hashed_messages: HashedMessages = PrivateAttr(default_factory=HashedMessages)
    """Shared by copies of a request, which usually only add messages."""

    def hash_messages(self) -> Any:
        """Return a SHA-256 object over the messages' digests; callers may extend it."""
        known = self._hashed_messages
        count = len(known.messages)
        if count == 0 or self.messages[:count] != known.messages:
            known.state, count = sha256(), 0
        digests = [message.digest for message in self.messages[count:]]
        known.state.update(b"".join(digests))
        known.messages = self.messages
        return known.state.copy()


class AgentAction(FrozenModel):
    """A tool call that the agent decided on."""

    tool: str
    """Registered name; the requested one if unknown; `_Exception` for a parse error."""
    tool_input: Any
    """A text or an argument object, already coerced to the tool's schema."""
    log: str = ""
    """The model's text that led here."""
    call_id: str | None = None
    """Id of the call in the model's reply; None for text formats."""


class AgentStep(FrozenModel):
    """An action and its outcome."""

    action: AgentAction
    observation: str
    failed: bool = False
    media: tuple[MediaPart, ...] = Field(default=(), exclude=True)
    """Images and sounds of the result that the model takes."""


class AgentFinish(FrozenModel):
    """The end of the loop: the answer, and the text that led to it."""

    return_values: dict[str, Any]
    log: str = ""


class PromptMessage(FrozenModel):
    role: Role
    template: str


class PromptSpec(FrozenModel):
    """A prompt template: one text, or chat messages; `{name}` is a variable."""

    template: str | None = None
    messages: tuple[PromptMessage, ...] | None = None
    partials: dict[str, str] = {}
    """Values of variables, fixed when the run started."""


class Budget(FrozenModel):
    """Limits of usage, checked before each model call."""

    tokens: int | None = None
    """Input and output tokens together."""
    cost: float | None = None
    """In the currency of the price table."""


class LoopGuard(FrozenModel):
    """After how many equal rounds the model gets a hint, and the run ends."""

    hint: int = 3
    stop: int = 5


class ExecutorOptions(FrozenModel):
    """Limits and options of the loop; invalid values are refused at the start (R11)."""

    max_iterations: int | None = 15
    max_concurrent_runs: int | None = None
    """Runs of the agent at once; more wait. The engine does not look at it."""
    max_execution_time: float | None = None
    """Seconds of working time: without queue, approvals and sub-agent runs."""
    early_stopping_method: str = "force"
    handle_parsing_errors: bool | str = True
    trim_intermediate_steps: int = -1
    return_intermediate_steps: bool = False
    budget: Budget | None = None
    loop_guard: LoopGuard | None = LoopGuard()
    observation_limit: int = 65_536
    """Bytes of an observation that the model sees; more is stored."""
    context_tokens: int | None = None
    """Maximum estimated tokens of a request; the oldest rounds are left out."""
    context_method: Literal["drop", "summary"] = "drop"
    output_schema: dict[str, Any] | None = None
    """JSON Schema of the final answer."""
    output_parser: str | None = None
    """An extension's parser, in place of the kind's."""
    parsing_error_handler: str | None = None
    """An extension's function that writes what the model gets after a parse error."""


ToolModeKind = Literal["hold_back", "replay_strict", "replay_by_tool"]


class ToolMode(FrozenModel):
    """How tool calls are answered if not all of them may be made.

    A spec without one makes its calls.
    """

    kind: ToolModeKind
    """`hold_back`: only calls that read are made. `replay_strict`: equal calls are
    answered from a recording, any other ends the run. `replay_by_tool`: calls of the
    same tool are."""
    recording: int | None = None
    """The run whose calls are replayed."""
    sends_reads: bool = False
    """Replay by tool: whether calls that read are made if there is no recording."""

    @model_validator(mode="after")
    def _check_recording(self) -> Self:
        if self.kind == "replay_strict" and self.recording is None:
            raise ValueError("A strict replay needs the run that it replays")
        if self.kind == "hold_back" and self.recording is not None:
            raise ValueError("A run that holds calls back replays no other")
        if self.sends_reads and self.kind != "replay_by_tool":
            raise ValueError("Only a replay by tool may make calls that read")
        return self


class AgentSpec(FrozenModel):
    """The frozen description of an agent that the engine executes."""

    kind: str
    prompt: PromptSpec | None = None
    """None for the default prompt of the kind."""
    model: ModelSettings = ModelSettings()
    tools: tuple[ToolSpec, ...] = ()
    executor: ExecutorOptions = ExecutorOptions()
    prices: "Prices | None" = None
    name: str = ""
    """The agent's name, for people."""
    slug: str = ""
    tool_mode: ToolMode | None = None
    """None: calls are made. Releases that do not know it refuse such a spec."""


class Prices(FrozenModel):
    """Prices per million tokens, in the currency of the price table."""

    input: float = 0.0
    cached_input: float | None = None
    """None: cached tokens cost the same as others."""
    output: float = 0.0


class HistoryTurn(FrozenModel):
    """An earlier turn of the conversation; `answer` is None if there was none."""

    question: str | None
    """None if the assistant spoke first."""
    answer: str | None = None
    is_note: bool = False
    """The question expected no answer: another message of the user followed it."""


class ResumePoint(FrozenModel):
    """A person resumed the run at `at_index` steps; `limits` apply from there."""

    at_index: int
    limits: dict[str, Any] = {}
    """Fields of `ExecutorOptions`."""


class RunError(FrozenModel):
    """Why a run failed: a code for programs, a sentence for people."""

    code: str
    message: SkipValidation[str]
    """A `TranslatableText` stays one."""


StopReason = Literal["iterations", "time", "tokens", "cost", "loop"]


class AgentResult(FrozenModel):
    status: Literal["succeeded", "limit_reached", "failed"]
    output: Any = None
    """The final value: a text, or any JSON value."""
    log: str = ""
    stop_reason: StopReason | None = None
    error: RunError | None = None


AgentSpec.model_rebuild()
