"""The rounds of one run: model calls, replies, planned steps, results."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, assert_never

from runs.engine.context_window import ContextWindow
from runs.engine.effects import (
    CallModel,
    CallTools,
    ModelCallFailed,
    ModelCallTimedOut,
    ModelReplied,
    Outcome,
    PlannedStep,
    Purpose,
    ToolResult,
    ToolsFinished,
)
from runs.engine.errors import ParseError
from runs.engine.kinds.kind import Decision, ScratchpadRound, ScratchpadStep
from runs.engine.kinds.registry import PARSING_ERROR_HANDLERS, get_kind_of_spec
from runs.engine.observations import truncate_for_model
from runs.engine.parsing.clean import clean_json, clean_text
from runs.engine.parsing.output_schema import parse_output
from runs.engine.planning import plan_calls, plan_parse_error
from runs.engine.progress import Progress, estimate_usage
from runs.engine.stopping import (
    get_stop_message,
    parse_final_answer,
    wants_final_answer,
)
from runs.engine.toolbox import Toolbox
from runs.engine.transcript import RoundWindow, Transcript
from runs.engine.types import (
    AgentFinish,
    AgentResult,
    AgentSpec,
    AgentStep,
    HistoryTurn,
    ModelRequest,
    Reply,
    ResumePoint,
    RunError,
    StopReason,
    ToolCall,
)

FUNCTION_CALL_REFUSED = (
    "The reply is a function call, which does not work here. Write the tool's name and "
    "its input as text, in the form described above."
)
FINAL_ANSWER_SECONDS = 60.0
"""Time limit of the one request after the run's own time limit."""


class WrongOutcome(TypeError):
    """The driver answered an effect with an outcome of another effect."""

    def __init__(self, outcome: object) -> None:
        super().__init__(f"{type(outcome).__name__} answers no such effect.")


class ReadReply(NamedTuple):
    """A reply, and its text without reasoning and invented results."""

    reply: Reply
    text: str


class RunRounds:
    """One run from its first request to its last step."""

    def __init__(
        self,
        spec: AgentSpec,
        inputs: Mapping[str, Any],
        *,
        turns: Sequence[HistoryTurn],
        resumes: Sequence[ResumePoint],
    ) -> None:
        self.kind = get_kind_of_spec(spec)
        self.toolbox = Toolbox(spec.tools, as_functions=self.kind.needs_functions)
        self.progress = Progress(spec, resumes)
        self.transcript = Transcript(spec, self.kind, inputs=inputs, turns=turns)
        self.context = ContextWindow(self.transcript)
        self._model = spec.model
        self._to_summarize: RoundWindow | None = None
        self._is_parse_error = False
        """Whether the newest reply was a parse error."""

    def next_model_call(self) -> CallModel:
        """Return the next model call: for the next round, or first for a summary."""
        options, count = self.progress.options, self.progress.rounds
        self._to_summarize = self.context.rounds_to_summarize(options, count)
        if self._to_summarize is not None:
            old = self._to_summarize
            build = partial(self.context.build_summary_request, self._model, old)
            return self._call_model("summary", build, old.first)
        shown = self.context.select_rounds(options, count)
        return self._call_model(
            "plan", partial(self.transcript.build_request, shown), shown.first
        )

    def final_model_call(self, reason: StopReason) -> CallModel | None:
        """Return the one model call for an answer at a limit, if there is one."""
        options, count = self.progress.options, self.progress.rounds
        if (
            not wants_final_answer(options, reason)
            or self.progress.find_exhausted_budget()
        ):
            return None
        shown = self.context.select_rounds(options, count)
        build = partial(self.transcript.build_final_request, shown)
        return self._call_model("early_stop", build, shown.first)

    def _call_model(
        self, purpose: Purpose, build: Callable[[], ModelRequest], first: int
    ) -> CallModel:
        return CallModel(
            purpose=purpose,
            build=build,
            at_index=self.progress.steps,
            round=self.progress.rounds + 1,
            seconds=self.progress.seconds_left() or self._grace_seconds(purpose),
            left_out=tuple(range(1, first + 1)),
        )

    def _grace_seconds(self, purpose: Purpose) -> float | None:
        no_limit = self.progress.options.max_execution_time is None
        return None if no_limit or purpose != "early_stop" else FINAL_ANSWER_SECONDS

    def read_reply(self, asked: CallModel, outcome: Outcome) -> ReadReply | None:
        """Count the usage of a model call; return its reply, except for summaries."""
        reply = self._read_outcome(asked, outcome)
        if asked.purpose == "summary" and self._to_summarize is not None:
            self.progress.fatal_error = None
            self.context.replace_with_summary(
                self._to_summarize.count, reply.text if reply else ""
            )
            return None
        return reply

    def _read_outcome(self, asked: CallModel, outcome: Outcome) -> ReadReply | None:
        match outcome:
            case ModelReplied():
                return self._read_answer(asked, outcome)
            case ModelCallFailed():
                self.progress.add_time(outcome.elapsed)
                self.progress.fatal_error = RunError(
                    code=outcome.code, message=outcome.message
                )
            case ModelCallTimedOut():
                self.progress.add_time(outcome.elapsed, all_of_it=True)
            case ToolsFinished():
                raise WrongOutcome(outcome)
            case _:
                assert_never(outcome)
        return None

    def _read_answer(self, asked: CallModel, outcome: ModelReplied) -> ReadReply:
        reply = _clean_reply(outcome.reply)
        self.progress.add_time(outcome.elapsed)
        usage = reply.usage
        if usage is None and self.progress.options.budget is not None:
            usage = estimate_usage(asked.request, reply.text)
        if usage is not None:
            self.progress.add_usage(usage)
        return self._tidy_reply(reply)

    def _tidy_reply(self, reply: Reply) -> ReadReply:
        return ReadReply(reply, self.kind.tidy(reply.text))

    def decide(self, received: ReadReply) -> CallTools | AgentResult | None:
        """Return what a reply leads to; None if it ends the run as failed."""
        try:
            decision = self._parse_decision(received)
        except ParseError as error:
            self._is_parse_error = True
            return self._handle_parse_error(received, str(error))
        self._is_parse_error = False
        if isinstance(decision, AgentFinish):
            output = decision.return_values["output"]
            return AgentResult(status="succeeded", output=output, log=decision.log)
        progress = self.progress
        return self._call_tools(
            plan_calls(
                decision,
                self.toolbox,
                start=progress.steps,
                log=received.text,
                used=progress.calls,
            )
        )

    def _parse_decision(self, received: ReadReply) -> Decision:
        is_call_only = received.reply.tool_calls and not received.text.strip()
        if is_call_only and not self.kind.needs_functions:
            raise ParseError(FUNCTION_CALL_REFUSED)
        decision = self.kind.parse_reply(received.text, received.reply, self.toolbox)
        schema = self.progress.options.output_schema
        if schema is None or not isinstance(decision, AgentFinish):
            return decision
        output = parse_output(decision.return_values["output"], schema)
        return AgentFinish(return_values={"output": output}, log=decision.log)

    def _handle_parse_error(self, received: ReadReply, why: str) -> CallTools | None:
        handling = self.progress.options.handle_parsing_errors
        if handling is False:
            self.progress.fatal_error = RunError(code="parse_error", message=why)
            return None
        handler = self.progress.options.parsing_error_handler
        if handler is not None:
            why = clean_text(PARSING_ERROR_HANDLERS[handler](why, received.text))
        message = why if handling is True else handling
        step = plan_parse_error(message, start=self.progress.steps, log=received.text)
        return self._call_tools((step,))

    def _call_tools(self, steps: tuple[PlannedStep, ...]) -> CallTools:
        seconds = self.progress.seconds_left()
        return CallTools(round=self.progress.rounds + 1, steps=steps, seconds=seconds)

    def record_round(
        self, received: ReadReply, planned: CallTools, outcome: Outcome
    ) -> AgentResult | None:
        """Record a round; return the result of the run if a tool returns directly."""
        if not isinstance(outcome, ToolsFinished):
            raise WrongOutcome(outcome)
        pairs = list(zip(planned.steps, outcome.results, strict=True))
        steps = tuple(_build_step(plan, result) for plan, result in pairs)
        self.progress.add_time(max(result.elapsed for result in outcome.results))
        self.progress.add_agent_usage(
            tokens=sum(result.tokens for result in outcome.results),
            cost=sum(result.cost for result in outcome.results),
        )
        self._add_round(received, steps)
        for plan, result in pairs:
            if plan.tool and plan.tool.return_direct and not result.failed:
                log = plan.action.log
                output = clean_json(result.value)
                return AgentResult(status="succeeded", output=output, log=log)
        self.progress.fatal_error = self._fatal_failure(pairs)
        return None

    def _add_round(self, received: ReadReply, steps: tuple[AgentStep, ...]) -> None:
        self.progress.add_round(steps, is_parse_error=self._is_parse_error)
        self.transcript.add_round(self._build_scratchpad_round(received, steps))

    def _fatal_failure(
        self, pairs: list[tuple[PlannedStep, ToolResult]]
    ) -> RunError | None:
        if self.progress.seconds_left() == 0:
            return None
        for plan, result in pairs:
            if plan.tool and plan.tool.on_error == "end" and result.failed:
                message = f"The tool {plan.tool.name!r} failed: {result.observation}"
                return RunError(code="tool_failed", message=message)
        return None

    def _build_scratchpad_round(
        self, received: ReadReply, steps: tuple[AgentStep, ...]
    ) -> ScratchpadRound:
        shown = [
            ScratchpadStep(step, self._truncate_observation(step)) for step in steps
        ]
        if hint := self.progress.hint:
            last = shown[-1]
            shown[-1] = ScratchpadStep(last.step, f"{last.observation}\n{hint}")
        return ScratchpadRound(received.text, received.reply, tuple(shown))

    def _truncate_observation(self, step: AgentStep) -> str:
        tool = self.toolbox.find(step.action.tool)
        limit = tool.output_limit if tool else None
        if limit is None:
            limit = self.progress.options.observation_limit
        return truncate_for_model(step.observation, limit)

    def build_limit_result(
        self, reason: StopReason, outcome: Outcome | None = None
    ) -> AgentResult:
        """Return the result at a limit; `outcome` is that of the final model call."""
        output: Any = get_stop_message(reason)
        if isinstance(outcome, ModelReplied):
            with suppress(ParseError):
                output = parse_final_answer(
                    self.kind,
                    _clean_reply(outcome.reply),
                    toolbox=self.toolbox,
                    options=self.progress.options,
                )
        return AgentResult(status="limit_reached", stop_reason=reason, output=output)


def _build_step(plan: PlannedStep, result: ToolResult) -> AgentStep:
    """Return the finished step; the engine's own observations win over the driver's.

    Observations that a fork copied win even over those.
    """
    if plan.observation is not None and not result.is_copied:
        return AgentStep(action=plan.action, observation=plan.observation, failed=True)
    return AgentStep(
        action=plan.action,
        observation=clean_text(result.observation),
        failed=result.failed,
        media=result.media,
    )


def _clean_reply(reply: Reply) -> Reply:
    """Return `reply` with storable text; usually the same object."""
    text = clean_text(reply.text)
    if text == reply.text and all(_is_clean(call) for call in reply.tool_calls):
        return reply
    calls = tuple(_clean_call(call) for call in reply.tool_calls)
    native = clean_json(reply.native)
    return reply.model_copy(
        update={"text": text, "tool_calls": calls, "native": native}
    )


def _is_clean(call: ToolCall) -> bool:
    words = call.id + call.name + call.arguments
    return clean_text(words) is words


def _clean_call(call: ToolCall) -> ToolCall:
    return ToolCall(
        id=clean_text(call.id),
        name=clean_text(call.name),
        arguments=clean_text(call.arguments),
    )
