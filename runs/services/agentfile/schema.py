"""The format of agent files, version 1: providers, prompts, tools, agents, datasets.

Fields that a file omits have the defaults below. Files never contain secrets, and an
import does not change them.
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from runs.engine.kinds.registry import resolve_kind_name
from runs.engine.types import ExecutorOptions, PromptMessage
from runs.evaluation.gate import GateResult, GateRules
from runs.models.agents import MAX_SUGGESTED_QUESTION_LENGTH, MAX_SUGGESTED_QUESTIONS
from runs.services.datasets.content import (
    MAX_CALLS,
    MAX_CELL_CHARS,
    MAX_NAME_CHARS,
    MAX_TAG_CHARS,
    MAX_TAGS,
)
from tools.definition.overrides import find_overrides_flaw
from tools.spec import Approval, AtExpiry, Effect, OnError

Slug = Annotated[str, Field(pattern=r"^[-a-zA-Z0-9_]{1,80}$")]
Name = Annotated[str, Field(max_length=120)]
SuggestedQuestion = Annotated[
    str, Field(min_length=1, max_length=MAX_SUGGESTED_QUESTION_LENGTH)
]
CellText = Annotated[str, Field(max_length=MAX_CELL_CHARS)]
KindName = Annotated[str, AfterValidator(resolve_kind_name)]
EntryVisibility = Literal["private", "groups", "everyone"]
ToolPolicyName = Literal["default", "allow", "ask", "deny"]


class AgentFileEntry(BaseModel):
    """One definition; unknown fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    slug: Slug
    visibility: EntryVisibility | None = None
    """None keeps the visibility; a new definition is private."""
    groups: tuple[Annotated[str, Field(max_length=150)], ...] = ()
    """Names of the groups it is shared with, if its visibility is `groups`."""


class ProviderEntry(AgentFileEntry):
    """A server that answers for models."""

    name: Name = ""
    kind: str = "openai"
    base_url: Annotated[str, Field(max_length=500)] = ""
    timeout: Annotated[float, Field(ge=1, le=3600)] = 60.0
    outage_minutes: Annotated[float, Field(ge=0, le=10_080)] = 30.0
    max_concurrent_runs: Annotated[int, Field(ge=1)] | None = None
    requests_per_minute: Annotated[int, Field(ge=1)] | None = None
    tokens_per_minute: Annotated[int, Field(ge=1)] | None = None
    key_env: Annotated[str, Field(max_length=120)] = ""
    default_model: Annotated[str, Field(max_length=200)] = ""
    stream: bool = True


class PromptEntry(AgentFileEntry):
    """A prompt: one template or chat messages."""

    name: Name = ""
    kind: KindName = "react"
    template: str | None = None
    messages: tuple[PromptMessage, ...] | None = None
    partials: dict[str, str] = {}

    @model_validator(mode="after")
    def check_template_or_messages(self) -> "PromptEntry":
        if (self.template is None) == (self.messages is None):
            raise ValueError("Give the prompt either a template or messages")
        return self


class ToolEntry(AgentFileEntry):
    """A tool; function tools take omitted fields from the registered function."""

    name: str | None = None
    kind: str = "function"
    description: str | None = None
    effect: Effect | None = None
    approval: Approval | None = None
    approval_hours: Annotated[float, Field(ge=0.01, le=8760)] | None = None
    at_expiry: AtExpiry | None = None
    approvers: Annotated[str, Field(max_length=150)] | None = None
    """Name of the group whose members approve; None keeps those of the tool."""
    second_person: bool | None = None
    """Nobody approves calls of their own runs; None keeps the rule of the tool."""
    args_schema: dict[str, Any] | None = None
    config: dict[str, Any] = {}
    return_direct: bool | None = None
    on_error: OnError = "feed_back"
    timeout: Annotated[float, Field(ge=0.1, le=3600)] | None = None
    retries: Annotated[int, Field(ge=0, le=5)] = 0
    calls_per_run: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    output_limit: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    hosts: tuple[str, ...] = ()
    credential: Slug | None = None
    """Slug of an existing credential."""
    mcp_server: Slug | None = None


class ToolUseEntry(BaseModel):
    """A tool or another agent that an agent uses; a tool's slug is short for it.

    `tools: [add, {tool: get-user, policy: ask}]`
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    tool: Slug | None = None
    agent: Slug | None = None
    policy: ToolPolicyName = "default"
    overrides: dict[str, Any] = {}

    @model_validator(mode="after")
    def check_tool_or_agent(self) -> "ToolUseEntry":
        if (self.tool is None) == (self.agent is None):
            raise ValueError("Name either a tool or an agent")
        if flaw := find_overrides_flaw(self.overrides):
            raise ValueError(f"overrides.{flaw.rstrip('.')}")
        if self.agent is not None and "effect" in self.overrides:
            raise ValueError(
                "overrides.effect: Only tools have an effect, agents do not"
            )
        return self


class ExpectedCallEntry(BaseModel):
    """A call that an example expects; without arguments, any are expected."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tool: Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARS)]
    tool_input: dict[str, Any] | None = None


class ExampleEntry(BaseModel):
    """Inputs, and what is expected."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    inputs: dict[
        Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARS)], CellText
    ]
    expected_answer: CellText = ""
    expected_calls: Annotated[
        tuple[ExpectedCallEntry, ...], Field(max_length=MAX_CALLS)
    ] = ()
    tags: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=MAX_TAG_CHARS)], ...],
        Field(max_length=MAX_TAGS),
    ] = ()


class DatasetEntry(AgentFileEntry):
    """A dataset; its examples become the newest version."""

    name: Name = ""
    description: str = ""
    inputs: tuple[Annotated[str, Field(max_length=MAX_NAME_CHARS)], ...] = ()
    """The variables, in the order of the columns."""
    examples: tuple[ExampleEntry, ...] = ()


class EvaluatorEntry(AgentFileEntry):
    """What turns a run into a score."""

    name: Name = ""
    kind: str
    config: dict[str, Any] = {}


class GateEntry(BaseModel):
    """The experiment that an agent requires before it is published."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    dataset: Slug
    evaluators: Annotated[tuple[Slug, ...], Field(min_length=1, max_length=50)]
    tool_mode: Literal[
        "hold_back", "replay_by_tool", "replay_reads", "replay_strict", "live"
    ] = "hold_back"
    repetitions: Annotated[int, Field(ge=1, le=20)] = 1
    rules: GateRules = GateRules()


class AgentEntry(AgentFileEntry):
    """An agent; without a prompt it uses the one of its kind."""

    name: Name = ""
    description: str = ""
    kind: KindName = "tool-calling"
    provider: Slug
    model: Annotated[str, Field(max_length=200)]
    parameters: dict[str, Any] = {}
    prompt: Slug | None = None
    tools: tuple[ToolUseEntry, ...] = ()
    executor: ExecutorOptions = ExecutorOptions()
    memory: bool = False
    suggested_questions: Annotated[
        tuple[SuggestedQuestion, ...], Field(max_length=MAX_SUGGESTED_QUESTIONS)
    ] = ()
    is_offered: bool | None = None
    """Whether MCP clients find it as a tool; None keeps what is set."""
    continues_without_client: bool = False
    """Whether a run continues if the program that waits for it disconnects."""
    version: Annotated[int, Field(ge=1)] | None = None
    """Number of the published version this was exported from; an import ignores it."""
    gate: GateEntry | None = None
    """What it requires before it is published; None keeps what is set."""
    gate_result: GateResult | None = None
    """What the gate said when the version was published."""
    draft: bool = False
    """Has never been published like this; an import does not publish it."""


class AgentFile(BaseModel):
    """A whole file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    agentfile: Literal[1]
    """Version of the format."""
    providers: tuple[ProviderEntry, ...] = ()
    prompts: tuple[PromptEntry, ...] = ()
    tools: tuple[ToolEntry, ...] = ()
    datasets: tuple[DatasetEntry, ...] = ()
    evaluators: tuple[EvaluatorEntry, ...] = ()
    agents: tuple[AgentEntry, ...] = ()
