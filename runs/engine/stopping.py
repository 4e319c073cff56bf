"""The end of a run at a limit: the sentence of `force`, the answer of `generate`."""

from typing import Any

from runs.engine.errors import ParseError
from runs.engine.kinds.kind import AgentKind
from runs.engine.parsing.output_schema import parse_output
from runs.engine.toolbox import Toolbox
from runs.engine.types import AgentFinish, ExecutorOptions, Reply, StopReason

FORCED_STOP_MESSAGE = "Agent stopped due to iteration limit or time limit."
_STOP_MESSAGES: dict[StopReason, str] = {
    "tokens": "Agent stopped because its token budget was used up.",
    "cost": "Agent stopped because its cost budget was used up.",
    "loop": "Agent stopped because it repeated the same step without any change.",
}


def get_stop_message(reason: StopReason) -> str:
    """Return the output of a run that reached a limit without an answer."""
    return _STOP_MESSAGES.get(reason, FORCED_STOP_MESSAGE)


def is_stop_message(output: object) -> bool:
    """Whether an output is one of these sentences instead of an answer."""
    return output == FORCED_STOP_MESSAGE or output in _STOP_MESSAGES.values()


def wants_final_answer(options: ExecutorOptions, reason: StopReason) -> bool:
    return (
        options.early_stopping_method == "generate"
        and reason in ("iterations", "time", "loop")
        and options.max_iterations != 0
        and options.max_execution_time != 0
    )


def parse_final_answer(
    kind: AgentKind, reply: Reply, *, toolbox: Toolbox, options: ExecutorOptions
) -> Any:
    """Return the answer in a last reply; raise `ParseError` if it has none.

    The final answer in the kind's format, otherwise the whole text; never an action.
    """
    text = kind.tidy(reply.text)
    try:
        decision = kind.parse_reply(text, reply, toolbox)
    except ParseError as error:
        if error.tried_action or not text.strip():
            raise
        decision = AgentFinish(return_values={"output": text}, log=text)
    if not isinstance(decision, AgentFinish):
        raise ParseError("The reply is an action.", tried_action=True)
    output = decision.return_values["output"]
    if options.output_schema is not None:
        return parse_output(output, options.output_schema)
    return output
