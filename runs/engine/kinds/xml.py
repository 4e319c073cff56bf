"""Kind `xml`: calls and answers in tags (R15)."""

import re

from runs.engine.errors import ParseError
from runs.engine.kinds.kind import (
    AgentKind,
    Decision,
    ParsedCall,
    ScratchpadRound,
    build_finish,
)
from runs.engine.parsing.reply_text import strip_code_fence, strip_thinking
from runs.engine.toolbox import Toolbox
from runs.engine.types import PromptMessage, PromptSpec, Reply
from tools.tool_name import strip_tool_name

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

FORMAT_HINT = (
    "Write <tool>name</tool><tool_input>input</tool_input> or "
    "<final_answer>answer</final_answer>, one of them, once."
)
_INPUT_END = "</tool_input>"
_TAGS = "tool|tool_input|observation|final_answer"
_ESCAPED_TAG = re.compile(rf"\[\[(/?(?:{_TAGS}))\]\]")
_TAG = re.compile(rf"<(/?(?:{_TAGS}))>")
_OTHER_TAG = re.compile(r"\s*+<(?!observation|final_answer)([A-Za-z][\w.-]{0,40})")
_BEGINS = re.compile("<tool>|<final_answer>")


def parse_xml_reply(text: str, reply: Reply, toolbox: Toolbox) -> Decision:
    call, answer = _parse_call(text), _parse_answer(text)
    has_call = "<tool>" in text or "</tool>" in text or "<tool_input>" in text
    if call is not None and answer is not None:
        raise ParseError(
            f"The reply has a tool and an answer. {FORMAT_HINT}", tried_action=True
        )
    if answer is not None:
        return build_finish(answer, text)
    if call is not None:
        return (call,)
    raise ParseError(f"The tags are not complete. {FORMAT_HINT}", tried_action=has_call)


def _parse_call(text: str) -> ParsedCall | None:
    """Return the call in `text` if it is well-formed."""
    name = _text_in_tag(text, "tool")
    if name is None or not strip_tool_name(name):
        return None
    behind = text[text.index("</tool>") + len("</tool>") :]
    opening, given = "<tool_input>", ""
    if opening not in text and (other := _OTHER_TAG.match(behind)):
        raise ParseError(
            f"The tag <{other[1]}> is not <tool_input>. {FORMAT_HINT}",
            tried_action=True,
        )
    if opening in text:
        if text.count(opening) > 1 or opening not in behind:
            return None
        given = behind.partition(opening)[2]
        if "final_answer>" in given:
            raise ParseError(
                f"The reply has a tool and an answer. {FORMAT_HINT}", tried_action=True
            )
    return ParsedCall(strip_tool_name(name), unescape_tags(given.strip()))


def _parse_answer(text: str) -> str | None:
    """Return the answer in `text` if it is well-formed."""
    inside = _text_in_tag(text, "final_answer")
    return None if inside is None else unescape_tags(inside.strip())


def _text_in_tag(text: str, tag: str) -> str | None:
    """Return the text in the only pair of `tag`."""
    opening, closing = f"<{tag}>", f"</{tag}>"
    if text.count(opening) != 1 or text.count(closing) != 1:
        return None
    start, end = text.index(opening) + len(opening), text.index(closing)
    return text[start:end] if start <= end else None


def unescape_tags(text: str) -> str:
    """Turn `[[tool]]` and the like back into the tags that they stand for."""
    return _ESCAPED_TAG.sub(r"<\1>", text)


def escape_tags(text: str) -> str:
    """Escape the format's own tags, so that they can be part of a value."""
    return _TAG.sub(r"[[\1]]", text)


def tidy_xml_reply(text: str) -> str:
    """Drop reasoning, an outer code fence, and everything after the first tool input.

    An input that is never closed ends where the model invents the tool's result.
    """
    before, closing, _ = strip_code_fence(strip_thinking(text, _BEGINS)).partition(
        _INPUT_END
    )
    name, call, behind = before.partition("</tool>")
    return before if closing else name + call + behind.partition("<observation>")[0]


def render_xml_round(shown: ScratchpadRound) -> str:
    """Repeat the model's text with its result in a tag."""
    closing = _INPUT_END if "<tool_input>" in shown.text else ""
    results = "".join(
        f"<observation>{escape_tags(step.observation)}</observation>"
        for step in shown.steps
    )
    return f"{shown.text.rstrip()}{closing}{results}\n"


KIND = AgentKind(
    name="xml",
    title="XML",
    summary="Writes calls and answers in tags; for models that were trained on them.",
    prompt=PromptSpec(
        messages=(
            PromptMessage(role="system", template=SYSTEM),
            PromptMessage(role="user", template=USER),
        )
    ),
    parse_reply=parse_xml_reply,
    tidy=tidy_xml_reply,
    as_text=render_xml_round,
    stop=(_INPUT_END,),
)
