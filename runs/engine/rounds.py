"""The rounds of one run: asking, reading replies, planning calls, recording results."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, assert_never

from runs.engine.clean import clean_json, clean_text
from runs.engine.context import Context
from runs.engine.effects import (
    CallModel,
    CallTools,
    ModelAnswered,
    ModelOutOfTime,
    ModelRefused,
    Outcome,
    PlannedStep,
    Purpose,
    ToolResult,
    ToolsAnswered,
)
from runs.engine.errors import ParseError
from runs.engine.kinds.kind import Decision, ShownRound, ShownStep
from runs.engine.kinds.registry import KINDS
from runs.engine.observations import cut_for_model
from runs.engine.planning import plan_calls, plan_parse_error
from runs.engine.progress import Progress, estimated_usage
from runs.engine.schema import shaped
from runs.engine.stopping import last_answer, sentence_of, wants_last_word
from runs.engine.toolbox import Toolbox
from runs.engine.transcript import Shown, Transcript
from runs.engine.types import (
    AgentFinish,
    AgentSpec,
    AgentStep,
    ModelRequest,
    Reply,
    Result,
    ResumePoint,
    RunError,
    StopReason,
    ToolCall,
    Turn,
)

LAST_WORD_SECONDS = 60.0
"""How long the one request after a time limit may take."""


class WrongOutcome(TypeError):
    """The driver answered an effect with an outcome of another effect."""

    def __init__(self, outcome: object) -> None:
        super().__init__(f"{type(outcome).__name__} answers no such effect.")


class Heard(NamedTuple):
    """A reply, and its text without thinking and invented results."""

    reply: Reply
    text: str


class Rounds:
    """One run from its first request to its last step."""

    def __init__(
        self,
        spec: AgentSpec,
        inputs: Mapping[str, Any],
        *,
        turns: Sequence[Turn],
        resumes: Sequence[ResumePoint],
    ) -> None:
        self.kind = KINDS[spec.kind]
        self.toolbox = Toolbox(spec.tools)
        self.progress = Progress(spec, resumes)
        self.transcript = Transcript(spec, self.kind, inputs=inputs, turns=turns)
        self.context = Context(self.transcript)
        self._model = spec.model
        self._to_summarise: Shown | None = None
        self._misunderstood = False
        """Whether the newest reply was a parse error."""

    def ask(self) -> CallModel:
        """Return the next model call: for the next round, or for a summary first."""
        options, count = self.progress.options, self.progress.rounds
        self._to_summarise = self.context.too_many(options, count)
        if self._to_summarise is not None:
            old = self._to_summarise
            build = partial(self.context.summary_request, self._model, old)
            return self._call("summary", build, old.first)
        shown = self.context.shown(options, count)
        return self._call("plan", partial(self.transcript.request, shown), shown.first)

    def ask_last(self, reason: StopReason) -> CallModel | None:
        """Return the one request for an answer at a limit, if there is to be one."""
        options, count = self.progress.options, self.progress.rounds
        if not wants_last_word(options, reason) or self.progress.budget_used_up():
            return None
        shown = self.context.shown(options, count)
        build = partial(self.transcript.last_request, shown)
        return self._call("early_stop", build, shown.first)

    def _call(
        self, purpose: Purpose, build: Callable[[], ModelRequest], first: int
    ) -> CallModel:
        return CallModel(
            purpose=purpose,
            build=build,
            at_index=self.progress.steps,
            round=self.progress.rounds + 1,
            seconds=self.progress.seconds_left() or self._grace(purpose),
            left_out=tuple(range(1, first + 1)),
        )

    def _grace(self, purpose: Purpose) -> float | None:
        no_limit = self.progress.options.max_execution_time is None
        return None if no_limit or purpose != "early_stop" else LAST_WORD_SECONDS

    def hear(self, asked: CallModel, outcome: Outcome) -> Heard | None:
        """Count what a model call used; return its reply, if it is one to decide on."""
        reply = self._heard(asked, outcome)
        if asked.purpose == "summary" and self._to_summarise is not None:
            self.progress.fatal = None
            self.context.replace(self._to_summarise.count, reply.text if reply else "")
            return None
        return reply

    def _heard(self, asked: CallModel, outcome: Outcome) -> Heard | None:
        match outcome:
            case ModelAnswered():
                return self._answered(asked, outcome)
            case ModelRefused():
                self.progress.spend_time(outcome.elapsed)
                self.progress.fatal = RunError(
                    code=outcome.code, message=outcome.message
                )
            case ModelOutOfTime():
                self.progress.spend_time(outcome.elapsed, all_of_it=True)
            case ToolsAnswered():
                raise WrongOutcome(outcome)
            case _:
                assert_never(outcome)
        return None

    def _answered(self, asked: CallModel, outcome: ModelAnswered) -> Heard:
        reply = _cleaned(outcome.reply)
        self.progress.spend_time(outcome.elapsed)
        usage = reply.usage
        if usage is None and self.progress.options.budget is not None:
            usage = estimated_usage(asked, reply.text)
        if usage is not None:
            self.progress.spend_tokens(usage)
        return self._tidied(reply)

    def _tidied(self, reply: Reply) -> Heard:
        return Heard(reply, self.kind.tidy(reply.text))

    def decide(self, heard: Heard) -> CallTools | Result | None:
        """Return what a reply leads to; None where it ends the run as failed."""
        try:
            decision = self._read(heard)
        except ParseError as error:
            self._misunderstood = True
            return self._not_understood(heard, str(error))
        self._misunderstood = False
        if isinstance(decision, AgentFinish):
            output = decision.return_values["output"]
            return Result(status="succeeded", output=output, log=decision.log)
        progress = self.progress
        return self._tools(
            plan_calls(
                decision,
                self.toolbox,
                start=progress.steps,
                log=heard.text,
                used=progress.calls,
            )
        )

    def _read(self, heard: Heard) -> Decision:
        decision = self.kind.read(heard.text, heard.reply, self.toolbox)
        schema = self.progress.options.output_schema
        if schema is None or not isinstance(decision, AgentFinish):
            return decision
        output = shaped(decision.return_values["output"], schema)
        return AgentFinish(return_values={"output": output}, log=decision.log)

    def _not_understood(self, heard: Heard, why: str) -> CallTools | None:
        handling = self.progress.options.handle_parsing_errors
        if handling is False:
            self.progress.fatal = RunError(code="parse_error", message=why)
            return None
        told = why if handling is True else handling
        step = plan_parse_error(told, start=self.progress.steps, log=heard.text)
        return self._tools((step,))

    def _tools(self, steps: tuple[PlannedStep, ...]) -> CallTools:
        seconds = self.progress.seconds_left()
        return CallTools(round=self.progress.rounds + 1, steps=steps, seconds=seconds)

    def record(
        self, heard: Heard, planned: CallTools, outcome: Outcome
    ) -> Result | None:
        """Keep a round; return the run's end where a result is returned directly."""
        if not isinstance(outcome, ToolsAnswered):
            raise WrongOutcome(outcome)
        pairs = list(zip(planned.steps, outcome.results, strict=True))
        steps = tuple(_step(plan, result) for plan, result in pairs)
        self.progress.spend_time(max(result.elapsed for result in outcome.results))
        self.progress.spend_on_agents(
            tokens=sum(result.tokens for result in outcome.results),
            cost=sum(result.cost for result in outcome.results),
        )
        self._keep(heard, steps)
        for plan, result in pairs:
            if plan.tool and plan.tool.return_direct and not result.failed:
                log = plan.action.log
                output = clean_json(result.value)
                return Result(status="succeeded", output=output, log=log)
        self.progress.fatal = self._fatal_failure(pairs)
        return None

    def retell(self, reply: Reply, steps: tuple[AgentStep, ...]) -> None:
        """Keep a round that is on record, with nothing decided anew."""
        self._keep(self._tidied(_cleaned(reply)), steps)

    def _keep(self, heard: Heard, steps: tuple[AgentStep, ...]) -> None:
        self.progress.add_round(steps, is_parse_error=self._misunderstood)
        self.transcript.add(self._shown(heard, steps))

    def _fatal_failure(
        self, pairs: list[tuple[PlannedStep, ToolResult]]
    ) -> RunError | None:
        if self.progress.seconds_left() == 0:
            return None
        for plan, result in pairs:
            if plan.tool and plan.tool.on_error == "end" and result.failed:
                told = f"The tool {plan.tool.name!r} failed: {result.observation}"
                return RunError(code="tool_failed", message=told)
        return None

    def _shown(self, heard: Heard, steps: tuple[AgentStep, ...]) -> ShownRound:
        shown = [ShownStep(step, self._shown_observation(step)) for step in steps]
        if hint := self.progress.hint:
            last = shown[-1]
            shown[-1] = ShownStep(last.step, f"{last.observation}\n{hint}")
        return ShownRound(heard.text, heard.reply, tuple(shown))

    def _shown_observation(self, step: AgentStep) -> str:
        tool = self.toolbox.find(step.action.tool)
        limit = tool.output_limit if tool else None
        if limit is None:
            limit = self.progress.options.observation_limit
        return cut_for_model(step.observation, limit)

    def stopped(self, reason: StopReason, outcome: Outcome | None = None) -> Result:
        """Return the end at a limit; `outcome` is what the last request brought."""
        output: Any = sentence_of(reason)
        if isinstance(outcome, ModelAnswered):
            with suppress(ParseError):
                output = last_answer(
                    self.kind,
                    _cleaned(outcome.reply),
                    toolbox=self.toolbox,
                    options=self.progress.options,
                )
        return Result(status="stopped", stop_reason=reason, output=output)


def _step(plan: PlannedStep, result: ToolResult) -> AgentStep:
    """Return the finished step; the engine's own answers are not the driver's.

    What a fork has copied holds also where its own tools would give another answer.
    """
    if plan.observation is not None and not result.is_copied:
        return AgentStep(action=plan.action, observation=plan.observation, failed=True)
    return AgentStep(
        action=plan.action,
        observation=clean_text(result.observation),
        failed=result.failed,
    )


def _cleaned(reply: Reply) -> Reply:
    """Return `reply` with text that can be stored; mostly the same object."""
    text = clean_text(reply.text)
    if text == reply.text and all(_is_clean(call) for call in reply.tool_calls):
        return reply
    calls = tuple(_cleaned_call(call) for call in reply.tool_calls)
    return reply.model_copy(update={"text": text, "tool_calls": calls, "native": None})


def _is_clean(call: ToolCall) -> bool:
    words = call.id + call.name + call.arguments
    return clean_text(words) is words


def _cleaned_call(call: ToolCall) -> ToolCall:
    return ToolCall(
        id=clean_text(call.id),
        name=clean_text(call.name),
        arguments=clean_text(call.arguments),
    )
