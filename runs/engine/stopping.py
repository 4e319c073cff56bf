"""How a run ends at a limit: the sentence of `force`, the answer of `generate`."""

from typing import Any

from runs.engine.errors import ParseError
from runs.engine.kinds.kind import Kind
from runs.engine.schema import shaped
from runs.engine.toolbox import Toolbox
from runs.engine.types import AgentFinish, ExecutorOptions, Reply, StopReason

FORCED = "Agent stopped due to iteration limit or time limit."
_SENTENCES: dict[StopReason, str] = {
    "tokens": "Agent stopped because its token budget was used up.",
    "cost": "Agent stopped because its cost budget was used up.",
    "loop": "Agent stopped because it repeated the same step without any change.",
}


def sentence_of(reason: StopReason) -> str:
    """Return the output of a run that was stopped without an answer."""
    return _SENTENCES.get(reason, FORCED)


def is_sentence(output: object) -> bool:
    """Say whether an output is one of these sentences, and no answer."""
    return output == FORCED or output in _SENTENCES.values()


def wants_last_word(options: ExecutorOptions, reason: StopReason) -> bool:
    """Say whether one more model request is to be made for an answer."""
    return (
        options.early_stopping_method == "generate"
        and reason in ("iterations", "time", "loop")
        and options.max_iterations != 0
        and options.max_execution_time != 0
    )


def last_answer(
    kind: Kind, reply: Reply, *, toolbox: Toolbox, options: ExecutorOptions
) -> Any:
    """Return the answer in a last reply; raise `ParseError` if it has none.

    It is the final answer in the kind's format, else the whole text, never an action.
    """
    text = kind.tidy(reply.text)
    try:
        decision = kind.read(text, reply, toolbox)
    except ParseError as error:
        if error.tried_action or not text.strip():
            raise
        decision = AgentFinish(return_values={"output": text}, log=text)
    if not isinstance(decision, AgentFinish):
        raise ParseError("The reply is an action.", tried_action=True)
    output = decision.return_values["output"]
    if options.output_schema is not None:
        return shaped(output, options.output_schema)
    return output
