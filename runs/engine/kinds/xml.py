"""Kind `xml`: calls and answers in tags (R15)."""

import re

from runs.engine.errors import ParseError
from runs.engine.kinds.kind import Call, Decision, Kind, ShownRound, finish
from runs.engine.reading import unfenced, without_thinking
from runs.engine.toolbox import Toolbox, stripped_name
from runs.engine.types import PromptMessage, PromptSpec, Reply

SYSTEM = """\
Help with what you are asked. You can use these tools:

{tools}

To use one, write its name and its input in tags. The result comes back in a tag, too:

<tool>name of the tool</tool><tool_input>what the tool gets</tool_input>
<observation>what the tool answered</observation>

The names are: {tool_names}. When you know enough, write the answer in its tag:

<final_answer>the answer</final_answer>

Where one of these tags is itself part of a text, write it with double square brackets \
instead, such as [[tool]]."""

USER = """\
{input}

{agent_scratchpad}"""

FORM = (
    "Write <tool>name</tool><tool_input>input</tool_input> or "
    "<final_answer>answer</final_answer>, one of them, once."
)
_INPUT_END = "</tool_input>"
_TAGS = "tool|tool_input|observation|final_answer"
_WRITTEN = re.compile(rf"\[\[(/?(?:{_TAGS}))\]\]")
_REAL = re.compile(rf"<(/?(?:{_TAGS}))>")


def read(text: str, reply: Reply, toolbox: Toolbox) -> Decision:
    """Understand one reply."""
    call, answer = _call(text), _answer(text)
    has_call = "<tool>" in text or "</tool>" in text or "<tool_input>" in text
    if call is not None and answer is not None:
        raise ParseError(
            f"The reply has a tool and an answer. {FORM}", tried_action=True
        )
    if answer is not None:
        return finish(answer, text)
    if call is not None:
        return (call,)
    raise ParseError(f"The tags are not complete. {FORM}", tried_action=has_call)


def _call(text: str) -> Call | None:
    """Return the call in `text` if it is well-formed."""
    name = _between(text, "tool")
    if name is None or not stripped_name(name):
        return None
    behind = text[text.index("</tool>") + len("</tool>") :]
    opening, given = "<tool_input>", ""
    if opening in text:
        if text.count(opening) > 1 or opening not in behind:
            return None
        given = behind.partition(opening)[2]
        if "final_answer>" in given:
            raise ParseError(
                f"The reply has a tool and an answer. {FORM}", tried_action=True
            )
    return Call(stripped_name(name), as_written(given.strip()))


def _answer(text: str) -> str | None:
    """Return the answer in `text` if it is well-formed."""
    inside = _between(text, "final_answer")
    return None if inside is None else as_written(inside.strip())


def _between(text: str, tag: str) -> str | None:
    """Return what the only pair of `tag` encloses."""
    opening, closing = f"<{tag}>", f"</{tag}>"
    if text.count(opening) != 1 or text.count(closing) != 1:
        return None
    start, end = text.index(opening) + len(opening), text.index(closing)
    return text[start:end] if start <= end else None


def as_written(text: str) -> str:
    """Turn `[[tool]]` and the like back into the tags they stand for."""
    return _WRITTEN.sub(r"<\1>", text)


def as_inside(text: str) -> str:
    """Write the format's own tags so that they can stand inside a value."""
    return _REAL.sub(r"[[\1]]", text)


def tidy(text: str) -> str:
    """Drop thinking, a fence around all, and what follows the first tool input.

    An input that is never closed ends where the model invents the tool's result.
    """
    before, closing, _ = unfenced(without_thinking(text)).partition(_INPUT_END)
    name, call, behind = before.partition("</tool>")
    return before if closing else name + call + behind.partition("<observation>")[0]


def as_text(shown: ShownRound) -> str:
    """Repeat the model's text with its result in a tag."""
    closing = _INPUT_END if "<tool_input>" in shown.text else ""
    results = "".join(
        f"<observation>{as_inside(step.observation)}</observation>"
        for step in shown.steps
    )
    return f"{shown.text.rstrip()}{closing}{results}\n"


KIND = Kind(
    name="xml",
    title="XML",
    summary="Writes calls and answers in tags; for models that were trained on them.",
    prompt=PromptSpec(
        messages=(
            PromptMessage(role="system", template=SYSTEM),
            PromptMessage(role="user", template=USER),
        )
    ),
    read=read,
    tidy=tidy,
    as_text=as_text,
    stop=(_INPUT_END,),
)
