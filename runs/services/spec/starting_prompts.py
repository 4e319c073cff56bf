"""Starting prompts for every agent kind: its own, and with instructions."""

from typing import NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from runs.engine.kinds.kind import AgentKind
from runs.engine.kinds.registry import AGENT_KINDS
from runs.engine.types import PromptSpec
from runs.services.spec.inline_prompt import build_prompt_with_instructions


class StartingInstructions(NamedTuple):
    """Instructions that fit the format of any kind."""

    name: str
    title: str | Promise
    text: str = ""


class StartingPrompt(NamedTuple):
    name: str
    title: str | Promise
    prompt: PromptSpec


FORMAT_ONLY = StartingInstructions("plain", gettext_lazy("Format only"))
RESEARCHER = StartingInstructions(
    "researcher",
    gettext_lazy("Researcher"),
    """\
You find things out. Look a fact up before you state it, and name where it is from.
Where sources differ, say so and say which one you trust more.
Where nothing is found, say what you have tried instead of guessing.""",
)
WORKER = StartingInstructions(
    "worker",
    gettext_lazy("Cautious operator"),
    """\
You get things done for the person who asks.
Look at how things are before you change any. Change one thing at a time, and check it.
If a tool fails twice in the same way, stop and say what stands in the way.
At the end list what you have changed.""",
)
EXPERT = StartingInstructions(
    "expert",
    gettext_lazy("Domain expert"),
    """\
You answer questions about {field} for {readers}.
Explain each word that they may not know. Say what is certain and what is an estimate.
Questions about anything else you decline in one friendly sentence.""",
)
PARTNER = StartingInstructions(
    "partner",
    gettext_lazy("Conversation partner"),
    """\
You talk with one person over a longer time. Come back to what was said before where it
helps. Answer briefly, and ask back where a question can be understood in two ways.""",
)

CHAT_INSTRUCTIONS = (FORMAT_ONLY, PARTNER, EXPERT)
RESEARCH_INSTRUCTIONS = (FORMAT_ONLY, RESEARCHER, EXPERT)
TASK_INSTRUCTIONS = (FORMAT_ONLY, RESEARCHER, WORKER)

INSTRUCTIONS_BY_KIND = {
    "conversational": CHAT_INSTRUCTIONS,
    "conversational-chat": CHAT_INSTRUCTIONS,
    "self-ask": RESEARCH_INSTRUCTIONS,
    "react-docstore": RESEARCH_INSTRUCTIONS,
}
"""Suitable instructions by kind; `TASK_INSTRUCTIONS` for the others."""


def list_starting_prompts(kind: AgentKind) -> list[StartingPrompt]:
    return [
        StartingPrompt(
            one.name, one.title, build_prompt_with_instructions(kind, one.text)
        )
        for one in INSTRUCTIONS_BY_KIND.get(kind.name, TASK_INSTRUCTIONS)
    ]


def get_starting_prompt(kind_name: str, name: str) -> StartingPrompt:
    """Return a starting prompt; the first kind's plain one for unknown names."""
    kind = AGENT_KINDS.get(kind_name, AGENT_KINDS["tool-calling"])
    choices = list_starting_prompts(kind)
    return next((one for one in choices if one.name == name), choices[0])


def list_starting_instructions() -> list[StartingInstructions]:
    """Return all starting instructions, each once."""
    found = [*CHAT_INSTRUCTIONS, *RESEARCH_INSTRUCTIONS, *TASK_INSTRUCTIONS]
    return [one for one in dict.fromkeys(found) if one.text]


def find_starting_instructions(name: str) -> str:
    """Return the instructions with that name; empty for unknown names."""
    return next(
        (one.text for one in list_starting_instructions() if one.name == name), ""
    )
