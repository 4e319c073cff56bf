"""Kind `self-ask`: splits a question into smaller ones for its one tool (R16)."""

import re
from collections import deque

from runs.engine.errors import ParseError
from runs.engine.kinds.kind import (
    AgentKind,
    Decision,
    ParsedCall,
    ScratchpadRound,
    build_finish,
)
from runs.engine.parsing.labels import cut_at_intermediate_answer
from runs.engine.parsing.reply_text import strip_code_fence, strip_thinking
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

FORMAT_HINT = "Write a line `Follow up: question` or `So the final answer is: answer`."

_COLON = r"[^\S\n]{0,9}[:：](?:\*\*(?=\s|$))?+"
_FOLLOW_UP = re.compile(rf"[Ff](?i:ollow[ -]?up){_COLON}(?P<asked>[^\n]*+)")
_FINAL = re.compile(rf"[Ss](?i:o the final answer is){_COLON}")
_BEGINS = re.compile(f"{_FOLLOW_UP.pattern}|{_FINAL.pattern}")


def parse_self_ask_reply(text: str, reply: Reply, toolbox: Toolbox) -> Decision:
    answer = _last_match(_FINAL, text)
    question = _last_match(_FOLLOW_UP, text)
    if answer and question:
        message = f"The reply has both a question and a final answer. {FORMAT_HINT}"
        raise ParseError(message, tried_action=True)
    if answer:
        return build_finish(text[answer.end() :].strip(), text)
    if question is None:
        raise ParseError(
            f"The reply has neither a question nor an answer. {FORMAT_HINT}"
        )
    return (ParsedCall(toolbox.tools[0].name, question["asked"].strip()),)


def _last_match(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """Return the last match; a question ends with its line, so one line has one."""
    last = deque(pattern.finditer(text), maxlen=1)
    return last[0] if last else None


def tidy_self_ask_reply(text: str) -> str:
    """Drop reasoning, an outer code fence, and invented intermediate answers."""
    return strip_code_fence(
        cut_at_intermediate_answer(strip_code_fence(strip_thinking(text, _BEGINS)))
    )


def render_self_ask_round(shown: ScratchpadRound) -> str:
    """Repeat the model's text with the intermediate answer below."""
    results = "".join(
        f"\nIntermediate answer: {step.observation}" for step in shown.steps
    )
    return f"{shown.text.rstrip()}{results}\n"


KIND = AgentKind(
    name="self-ask",
    title="Self-ask",
    summary="Splits a question into smaller ones that its single tool answers.",
    prompt=PromptSpec(template=TEMPLATE),
    parse_reply=parse_self_ask_reply,
    tidy=tidy_self_ask_reply,
    as_text=render_self_ask_round,
    stop=("\nIntermediate answer:",),
    tools=1,
)
