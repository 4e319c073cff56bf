"""Kind `self-ask`: splits a question into smaller ones for its one tool (R16)."""

import re
from collections import deque

from runs.engine.errors import ParseError
from runs.engine.kinds.kind import Call, Decision, Kind, ShownRound, finish
from runs.engine.labels import cut_at_intermediate_answer
from runs.engine.reading import unfenced, without_thinking
from runs.engine.toolbox import Toolbox
from runs.engine.types import PromptSpec, Reply

TEMPLATE = """\
Answer the question by asking yourself smaller ones. Each is answered for you by:

{tools}

Keep to the form of this example:

Question: Who was born first, the painter of Guernica or the composer of Bolero?
Are follow up questions needed here: Yes.
Follow up: When was the painter of Guernica born?
Intermediate answer: Pablo Picasso painted Guernica; he was born in 1881.
Follow up: When was the composer of Bolero born?
Intermediate answer: Maurice Ravel composed Bolero; he was born in 1875.
So the final answer is: the composer of Bolero

Question: {input}
Are follow up questions needed here:{agent_scratchpad}"""

FORM = "Write a line `Follow up: question` or `So the final answer is: answer`."

_COLON = r"[^\S\n]{0,9}[:：](?:\*\*(?=\s|$))?+"
_FOLLOW_UP = re.compile(rf"[Ff](?i:ollow[ -]?up){_COLON}(?P<asked>[^\n]*+)")
_FINAL = re.compile(rf"[Ss](?i:o the final answer is){_COLON}")


def read(text: str, reply: Reply, toolbox: Toolbox) -> Decision:
    """Understand one reply."""
    answer = _last(_FINAL, text)
    question = _last(_FOLLOW_UP, text)
    if answer and question:
        told = f"The reply has both a question and a final answer. {FORM}"
        raise ParseError(told, tried_action=True)
    if answer:
        return finish(text[answer.end() :].strip(), text)
    if question is None:
        raise ParseError(f"The reply has neither a question nor an answer. {FORM}")
    return (Call(toolbox.tools[0].name, question["asked"].strip()),)


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """Return the last match; a question goes to its line's end, so one line has one."""
    last = deque(pattern.finditer(text), maxlen=1)
    return last[0] if last else None


def tidy(text: str) -> str:
    """Drop thinking, a fence around all, and invented intermediate answers."""
    return unfenced(cut_at_intermediate_answer(unfenced(without_thinking(text))))


def as_text(shown: ShownRound) -> str:
    """Repeat the model's text with the intermediate answer below."""
    results = "".join(
        f"\nIntermediate answer: {step.observation}" for step in shown.steps
    )
    return f"{shown.text.rstrip()}{results}\n"


KIND = Kind(
    name="self-ask",
    title="Self-ask",
    summary="Splits a question into smaller ones that its single tool answers.",
    prompt=PromptSpec(template=TEMPLATE),
    read=read,
    tidy=tidy,
    as_text=as_text,
    stop=("\nIntermediate answer:",),
    tools=1,
)
