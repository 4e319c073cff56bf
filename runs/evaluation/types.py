"""The values of an evaluation: an example, the record of a run, and a score."""

from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidatorFunctionWrapHandler, WrapValidator, model_validator

from runs.engine.types import FrozenModel
from tools.text.translatable import TranslatableText, translatable


class ExpectedCall(FrozenModel):
    """A tool call that an example expects."""

    tool: str
    tool_input: dict[str, Any] | None = None
    """Its arguments, or their JSON Schema; None for any."""


class EvaluationExample(FrozenModel):
    """What is known of one example of a dataset."""

    inputs: dict[str, Any] = {}
    expected_answer: str = ""
    """Empty if the example does not name one."""
    expected_calls: tuple[ExpectedCall, ...] = ()
    tags: tuple[str, ...] = ()


class RecordedStep(FrozenModel):
    """One tool call of a run."""

    tool: str
    tool_input: Any = None
    observation: str = ""
    status: str = "succeeded"
    """One of `AgentStep.Status`."""
    failed: bool = False
    answered_by: str = ""
    """Empty for a real call; see `AgentStep.AnsweredBy`."""


class RecordedMessage(FrozenModel):
    """A message of the conversation from before the run."""

    role: Literal["user", "assistant"]
    text: str


class EvaluationRecord(FrozenModel):
    """Everything that an evaluator may know of a run."""

    status: str = "succeeded"
    """One of `Run.Status`."""
    stop_reason: str = ""
    error_code: str = ""
    error_message: str = ""
    earlier_messages: tuple[RecordedMessage, ...] = ()
    """Those that the model saw, oldest first."""
    inputs: dict[str, Any] = {}
    answer: Any = None
    """A text or a JSON value; None if a limit came first."""
    output: Any = None
    """The answer, or what a limit left in its place."""
    steps: tuple[RecordedStep, ...] = ()
    rounds: int = 0
    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    seconds: float | None = None
    """Working time: model calls and tool calls, without waiting for people."""
    first_token: float | None = None
    """Seconds from the start of the first model call to its first text."""

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    @property
    def calls(self) -> tuple[RecordedStep, ...]:
        """The steps that are calls of tools, without replies nobody could parse."""
        return tuple(step for step in self.steps if not step.tool.startswith("_"))


def _keep_translatable(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    return value if isinstance(value, TranslatableText) else handler(value)


ScoreText = Annotated[str, WrapValidator(_keep_translatable)]
"""A text in English; pages translate a `TranslatableText`."""


class JudgeMessage(FrozenModel):
    """A message to the model of a judge."""

    role: str
    text: str


class JudgeReply(FrozenModel):
    """What the model replied to one vote."""

    text: str = ""
    problem: ScoreText = ""
    """Why there is no reply; empty if there is one."""
    cost: float = 0.0
    seconds: float = 0.0
    """With the wait for its turn."""


class JudgeExchange(FrozenModel):
    """What a judge asked a model, and the replies: one for each vote."""

    provider: str
    """Slug."""
    model: str
    messages: tuple[JudgeMessage, ...]
    replies: tuple[JudgeReply, ...] = ()


class ScoreResult(FrozenModel):
    """What an evaluator says of a run; a `problem` means that it says nothing."""

    value: float | None = Field(default=None, ge=0, le=1, allow_inf_nan=False)
    label: str = ""
    passed: bool | None = None
    explanation: ScoreText = ""
    problem: ScoreText = ""
    """Why the run was not scored; empty if it was."""
    applies: bool = True
    """False if the example has nothing to compare with: other evaluators decide."""
    cost: Decimal = Decimal(0)
    """Of the model calls of a judge."""
    exchanges: tuple[JudgeExchange, ...] = ()
    """What a judge asked, and the replies."""

    @model_validator(mode="after")
    def _check_content(self) -> Self:
        if self.problem and (self.value is not None or self.passed is not None):
            raise ValueError("A run that is not scored has no value.")
        if not self.problem and self.value is None and not self.label:
            raise ValueError("A score has a value or a label.")
        return self

    @classmethod
    def of_pass(cls, passed: bool, explanation: str = "", *, label: str = "") -> Self:
        return cls(
            value=float(passed), passed=passed, explanation=explanation, label=label
        )

    @classmethod
    def of_value(cls, value: float, *, threshold: float, explanation: str = "") -> Self:
        """Return a score that passes from `threshold` on."""
        value = min(max(value, 0.0), 1.0)
        return cls(value=value, passed=value >= threshold, explanation=explanation)

    @classmethod
    def not_scored(
        cls, problem: str, *, cost: Decimal = Decimal(0), applies: bool = True
    ) -> Self:
        if not problem.strip():
            problem = translatable("The evaluator gave no reason.")
        return cls(problem=problem, cost=cost, applies=applies)
