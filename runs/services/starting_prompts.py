"""Prompts to begin with, for every agent kind: its own, and that with instructions."""

from typing import NamedTuple

from runs.engine.kinds.kind import Kind
from runs.engine.kinds.registry import KINDS
from runs.engine.types import PromptSpec
from runs.services.own_prompt import prompt_with


class Beginning(NamedTuple):
    """Instructions that go with the format of any kind."""

    name: str
    title: str
    text: str = ""


class StartingPrompt(NamedTuple):
    """One prompt to begin with."""

    name: str
    title: str
    prompt: PromptSpec


PLAIN = Beginning("plain", "Nothing but the format")
RESEARCHER = Beginning(
    "researcher",
    "Researcher",
    """\
You find things out. Look a fact up before you state it, and name where it is from.
Where sources differ, say so and say which one you trust more.
Where nothing is found, say what you have tried instead of guessing.""",
)
WORKER = Beginning(
    "worker",
    "Careful worker",
    """\
You get things done for the person who asks.
Look at how things are before you change any. Change one thing at a time, and check it.
If a tool fails twice in the same way, stop and say what stands in the way.
At the end list what you have changed.""",
)
EXPERT = Beginning(
    "expert",
    "Expert in a field",
    """\
You answer questions about {field} for {readers}.
Explain each word that they may not know. Say what is certain and what is an estimate.
Questions about anything else you decline in one friendly sentence.""",
)
PARTNER = Beginning(
    "partner",
    "Partner in a talk",
    """\
You talk with one person over a longer time. Come back to what was said before where it
helps. Answer briefly, and ask back where a question can be understood in two ways.""",
)

TALKING = (PLAIN, PARTNER, EXPERT)
FINDING = (PLAIN, RESEARCHER, EXPERT)
DOING = (PLAIN, RESEARCHER, WORKER)

BEGINNINGS = {
    "conversational": TALKING,
    "conversational-chat": TALKING,
    "self-ask": FINDING,
    "react-docstore": FINDING,
}
"""What suits a kind; `DOING` for the others."""


def starting_prompts(kind: Kind) -> list[StartingPrompt]:
    """Return the prompts that an author of a prompt for `kind` can begin with."""
    return [
        StartingPrompt(one.name, one.title, prompt_with(kind, one.text))
        for one in BEGINNINGS.get(kind.name, DOING)
    ]


def starting_prompt(kind_name: str, name: str) -> StartingPrompt:
    """Return one of them; the first kind's and the plain one for unknown names."""
    kind = KINDS.get(kind_name, KINDS["tool-calling"])
    choices = starting_prompts(kind)
    return next((one for one in choices if one.name == name), choices[0])


def beginnings() -> list[Beginning]:
    """Return all instructions to start from, each once."""
    found = [*TALKING, *FINDING, *DOING]
    return [one for one in dict.fromkeys(found) if one.text]


def instructions_to_start_from(name: str) -> str:
    """Return the instructions of that name; empty for unknown names."""
    return next((one.text for one in beginnings() if one.name == name), "")
