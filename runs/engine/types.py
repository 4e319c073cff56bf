"""The words of the agent loop: messages, actions, steps and the spec a run is made of.

All of them are frozen, and serialise to the JSON that is stored.
"""

from dataclasses import dataclass, field
from hashlib import sha256
from json.encoder import encode_basestring as _quoted
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, PrivateAttr

from runs.engine.clean import clean_text
from tools.spec import ToolSpec


class Frozen(BaseModel):
    """A value: immutable, compared by content, unknown fields refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class TextPart(Frozen):
    """A piece of text of a message."""

    type: Literal["text"] = "text"
    text: str


class ToolCall(Frozen):
    """One call a model asked for in its own function-calling format."""

    id: str
    name: str
    arguments: str
    """The raw text the model sent; often JSON, not always."""


Role = Literal["system", "user", "assistant", "tool"]


class Message(Frozen):
    """One message of a request; serialised once, for digest and body alike."""

    role: Role
    content: tuple[TextPart, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    native: dict[str, Any] | None = None
    """The provider's own assembled message, for adapters that must repeat it."""

    @classmethod
    def of(cls, role: Role, text: str, **more: Any) -> "Message":
        """Return a message of one text part, checked once for both."""
        return cls.model_validate({"role": role, "content": ({"text": text},), **more})

    @property
    def text(self) -> str:
        """All text parts, joined."""
        if len(self.content) == 1:
            return self.content[0].text
        return "".join(part.text for part in self.content)

    @property
    def canonical(self) -> bytes:
        """Canonical JSON in the Chat Completions shape, UTF-8; made once.

        Lone surrogates, which UTF-8 cannot carry, become U+FFFD.
        """
        # Not a cached_property, which Python 3.11 guards with a lock each.
        known: bytes | None = self.__dict__.get("_canonical")
        if known is None:
            known = self.__dict__["_canonical"] = self._written()
        return known

    def _written(self) -> bytes:
        text, more = self.text, ""
        said = _quoted(text) if text or not self.tool_calls else "null"
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


def _canonical_call(call: ToolCall) -> str:
    called = f'{{"name":{_quoted(call.name)},"arguments":{_quoted(call.arguments)}}}'
    return f'{{"id":{_quoted(call.id)},"type":"function","function":{called}}}'


class Usage(Frozen):
    """Tokens of one model call, as the provider counted them."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """Part of the input that the provider had cached."""
    reasoning_tokens: int = 0
    """Part of the output that was reasoning."""


class Reply(Frozen):
    """One complete answer of a model, whatever the provider's wire format was."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""
    """Thinking the provider delivered apart from the answer; never parsed."""
    finish_reason: str = ""
    """The provider's word: stop, length, tool_calls, content_filter …"""
    usage: Usage | None = None
    model: str = ""
    """The model that answered, by the provider's own account."""
    native: dict[str, Any] | None = None
    """The assembled provider message, unknown fields kept."""


class ModelSettings(Frozen):
    """Which model, of which provider, with which parameters."""

    model: str = ""
    provider: str = ""
    """Slug of the provider; its address and key are looked up at call time."""
    provider_id: int | None = None
    parameters: dict[str, Any] = {}
    """Sent as they are: temperature, max_tokens, top_p, seed …"""
    stream: bool = True


@dataclass
class HashedMessages:
    """How far the messages of a run were hashed, so that each is hashed once."""

    messages: tuple[Message, ...] = field(default=(), compare=False)
    state: Any = field(default=None, compare=False, repr=False)
    """The SHA-256 object that took their digests."""


class ModelRequest(Frozen):
    """Everything one model call sends, before any provider's wire format."""

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    stop: tuple[str, ...] = ()
    """Stop words; sent where accepted, enforced by the engine everywhere."""
    settings: ModelSettings = ModelSettings()
    output_schema: dict[str, Any] | None = None
    _hashed: HashedMessages = PrivateAttr(default_factory=HashedMessages)
    """Shared by the copies of a request, which mostly add messages to it."""

    def hash_of_messages(self) -> Any:
        """Return a SHA-256 object over the digest of each message, yours to go on."""
        known = self._hashed
        count = len(known.messages)
        if count == 0 or self.messages[:count] != known.messages:
            known.state, count = sha256(), 0
        digests = [message.digest for message in self.messages[count:]]
        known.state.update(b"".join(digests))
        known.messages = self.messages
        return known.state.copy()


class AgentAction(Frozen):
    """What the agent decided to do: one tool call."""

    tool: str
    """Registered name; the requested one if unknown; `_Exception` for a parse error."""
    tool_input: Any
    """A text or an argument object, already brought into the shape the tool takes."""
    log: str = ""
    """The model's own words that led here."""
    call_id: str | None = None
    """Id of the call in the model's reply; None for text formats."""


class AgentStep(Frozen):
    """One action and what came of it."""

    action: AgentAction
    observation: str
    failed: bool = False


class AgentFinish(Frozen):
    """The end of the loop: the answer, and the words that led to it."""

    return_values: dict[str, Any]
    log: str = ""


class PromptMessage(Frozen):
    """One message of a chat prompt template."""

    role: Role
    template: str


class PromptSpec(Frozen):
    """A prompt template: one text, or chat messages; `{name}` is a variable."""

    template: str | None = None
    messages: tuple[PromptMessage, ...] | None = None
    partials: dict[str, str] = {}
    """Values of variables, fixed when the run began."""


class Budget(Frozen):
    """What a run may use up; checked before each model call."""

    tokens: int | None = None
    """Input and output tokens together."""
    cost: float | None = None
    """In the currency of the price table."""


class LoopGuard(Frozen):
    """After how many equal rounds the model is told, and the run is stopped."""

    hint: int = 3
    stop: int = 5


class ExecutorOptions(Frozen):
    """Limits and habits of the loop; illegal values are refused at the start (R11)."""

    max_iterations: int | None = 15
    max_execution_time: float | None = None
    """Seconds of working time: not queue, approval or child runs."""
    early_stopping_method: str = "force"
    handle_parsing_errors: bool | str = True
    trim_intermediate_steps: int = -1
    return_intermediate_steps: bool = False
    budget: Budget | None = None
    loop_guard: LoopGuard | None = None
    observation_limit: int = 65_536
    """Bytes of an observation that the model gets to see; more is stored."""
    context_tokens: int | None = None
    """Estimated tokens a request may hold; the oldest rounds give way."""
    context_method: Literal["drop", "summary"] = "drop"
    output_schema: dict[str, Any] | None = None
    """JSON Schema of the final answer."""


class AgentSpec(Frozen):
    """The frozen description of an agent that the engine executes."""

    kind: str
    prompt: PromptSpec | None = None
    """None for the kind's own prompt."""
    model: ModelSettings = ModelSettings()
    tools: tuple[ToolSpec, ...] = ()
    executor: ExecutorOptions = ExecutorOptions()
    prices: "Prices | None" = None
    name: str = ""
    """The agent's name, for people."""
    slug: str = ""


class Prices(Frozen):
    """What a million tokens cost, in the currency of the price table."""

    input: float = 0.0
    cached_input: float | None = None
    """None: cached tokens cost what others do."""
    output: float = 0.0


class Turn(Frozen):
    """An earlier question of the conversation; `answer` None: there was none."""

    question: str
    answer: str | None = None


class ResumePoint(Frozen):
    """A person continued the run at `at_index` steps; `limits` override from there."""

    at_index: int
    limits: dict[str, Any] = {}
    """Fields of `ExecutorOptions`."""


class RunError(Frozen):
    """Why a run failed: a word for programs, a sentence for people."""

    code: str
    message: str


StopReason = Literal["iterations", "time", "tokens", "cost", "loop"]


class Result(Frozen):
    """How the loop ended."""

    status: Literal["succeeded", "stopped", "failed"]
    output: Any = None
    """The final value: a text, or any JSON value."""
    log: str = ""
    stop_reason: StopReason | None = None
    error: RunError | None = None


AgentSpec.model_rebuild()
