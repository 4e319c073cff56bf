"""What an agent file may say, before anything is looked up."""

import pytest

from runs.engine.kinds.registry import AGENT_KINDS, KIND_ALIASES
from runs.services.agentfile.schema import AgentEntry, PromptEntry


@pytest.mark.parametrize(
    ("written", "kind"), [*KIND_ALIASES.items(), ("OPENAI_TOOLS", "tool-calling")]
)
def test_a_classic_kind_name_is_an_alias(written, kind):
    agent = AgentEntry(slug="a", provider="p", model="m", kind=written)
    prompt = PromptEntry(slug="a", template="{input}", kind=written)

    assert kind in AGENT_KINDS
    assert (agent.kind, prompt.kind) == (kind, kind)


def test_an_unknown_kind_is_left_to_be_named_in_the_error():
    assert AgentEntry(slug="a", provider="p", model="m", kind="fax").kind == "fax"
