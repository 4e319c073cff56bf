"""The format of agent files, version 1: providers, prompts, tools and agents.

A file says how its definitions are: what it leaves out has the default written here.
Secrets are never in it, and importing leaves them alone.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from runs.engine.types import ExecutorOptions, PromptMessage
from tools.overrides import flaw_of_overrides
from tools.spec import Approval, AtExpiry, Effect, OnError

Slug = Annotated[str, Field(pattern=r"^[-a-zA-Z0-9_]{1,80}$")]
Name = Annotated[str, Field(max_length=120)]
Visibility = Literal["private", "groups", "everyone"]
Policy = Literal["default", "allow", "ask", "deny"]


class Entry(BaseModel):
    """One definition; unknown fields are refused by name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    slug: Slug
    visibility: Visibility | None = None
    """None leaves it as it is; a new one is private."""


class ProviderEntry(Entry):
    """A server that answers for models."""

    name: Name = ""
    kind: str = "openai"
    base_url: Annotated[str, Field(max_length=500)] = ""
    timeout: Annotated[float, Field(ge=1, le=3600)] = 60.0
    key_env: Annotated[str, Field(max_length=120)] = ""
    default_model: Annotated[str, Field(max_length=200)] = ""
    stream: bool = True


class PromptEntry(Entry):
    """A prompt: one text, or chat messages."""

    name: Name = ""
    kind: str = "react"
    template: str | None = None
    messages: tuple[PromptMessage, ...] | None = None
    partials: dict[str, str] = {}

    @model_validator(mode="after")
    def check_text(self) -> "PromptEntry":
        """A prompt without text, or with two, is a mistake."""
        if (self.template is None) == (self.messages is None):
            raise ValueError("Give the prompt either a template or messages")
        return self


class ToolEntry(Entry):
    """A tool; function tools take what is left out from the registered function."""

    name: str | None = None
    kind: str = "function"
    description: str | None = None
    effect: Effect | None = None
    approval: Approval | None = None
    approval_hours: Annotated[float, Field(ge=0.01, le=8760)] | None = None
    at_expiry: AtExpiry | None = None
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
    """Slug of one that is there; files hold no secrets."""
    mcp_server: Slug | None = None


class ToolUse(BaseModel):
    """A tool, or another agent, in the hands of an agent; a bare slug is short for it.

    `tools: [add, {tool: get-user, policy: ask}]`
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    tool: Slug | None = None
    agent: Slug | None = None
    policy: Policy = "default"
    overrides: dict[str, Any] = {}

    @model_validator(mode="after")
    def check_one(self) -> "ToolUse":
        """Exactly one thing is used."""
        if (self.tool is None) == (self.agent is None):
            raise ValueError("Name either a tool or an agent")
        if flaw := flaw_of_overrides(self.overrides):
            raise ValueError(f"overrides.{flaw.rstrip('.')}")
        if self.agent is not None and "effect" in self.overrides:
            raise ValueError(
                "overrides.effect: Only a tool has one; an agent's tools do"
            )
        return self


class AgentEntry(Entry):
    """An agent; without a prompt it has the one of its kind."""

    name: Name = ""
    description: str = ""
    kind: str = "tool-calling"
    provider: Slug
    model: Annotated[str, Field(max_length=200)]
    parameters: dict[str, Any] = {}
    prompt: Slug | None = None
    tools: tuple[ToolUse, ...] = ()
    executor: ExecutorOptions = ExecutorOptions()
    memory: bool = False


class AgentFile(BaseModel):
    """A whole file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    agentfile: Literal[1]
    """Version of the format."""
    providers: tuple[ProviderEntry, ...] = ()
    prompts: tuple[PromptEntry, ...] = ()
    tools: tuple[ToolEntry, ...] = ()
    agents: tuple[AgentEntry, ...] = ()
