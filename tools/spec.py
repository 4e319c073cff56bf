"""What engine and worker need to know of a tool: name, schema, effect and limits."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

Effect = Literal["read", "idempotent", "side_effect"]
"""What a call may change: nothing, the same however often, or something each time."""

AtExpiry = Literal["reject", "stop"]
"""What happens to a call nobody decided on: it is rejected, or the run stops."""

Approval = Literal["never", "side_effects", "always"]
"""When a person must approve a call before it is made."""

OnError = Literal["feed_back", "end"]
"""What a failed call does: the model gets the error and continues, or the run ends."""


class ToolSpec(BaseModel):
    """A tool as a run froze it at its start; secrets are referenced, never in it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    """What the model calls it; unique within an agent."""
    description: str = ""
    args_schema: dict[str, Any] | None = None
    """JSON Schema of the argument object; None for a tool that takes one text."""
    return_direct: bool = False
    """The first successful result is the run's output."""
    effect: Effect = "side_effect"
    asks: bool = False
    """A person must approve each call; policy and effect are already weighed."""
    approval_hours: float | None = None
    """How long a question waits for an answer; None for the operator's setting."""
    at_expiry: AtExpiry | None = None
    """What happens then; None for the operator's setting."""
    timeout: float = 60.0
    """Seconds one call may take."""
    retries: int = 0
    """How often a failed call of a `read` or `idempotent` tool is tried again."""
    on_error: OnError = "feed_back"
    calls_per_run: int | None = None
    output_limit: int | None = None
    """Bytes of an observation shown to the model; None for the executor's limit."""
    kind: str = "function"
    config: dict[str, Any] = {}
    """What the kind needs to make the call; its shape is the kind's own."""
    tool_id: int | None = None
    revision: int | None = None

    @property
    def takes(self) -> Literal["arguments", "nothing", "text"]:
        """Whether a call carries an argument object, nothing at all, or one text."""
        if self.args_schema is None:
            return "text"
        return "arguments" if self.args_schema.get("properties") else "nothing"
