"""The instructions of an agent are its own, whoever took their slug before."""

import pytest

from runs.models import Agent, PromptTemplate
from runs.services.agentfile.export import export_agentfile
from runs.services.agentfile.load import import_agentfile
from runs.services.agentfile.text import AgentFileRefused
from runs.services.agents.manage import duplicate_definition
from runs.services.agents.save import save_agent
from runs.services.spec.inline_prompt import is_inline_prompt
from tests.make import make_agent, make_prompt, make_provider, make_user

pytestmark = pytest.mark.django_db


def write(agent: Agent, text: str) -> PromptTemplate:
    """Save instructions as the agent's page does; return the prompt."""
    save_agent(agent, uses=[], instructions=text)
    prompt = Agent.objects.get(pk=agent.pk).prompt
    assert prompt is not None
    assert is_inline_prompt(prompt, agent)
    return prompt


def test_a_prompt_of_somebody_else_with_the_slug_is_neither_used_nor_changed():
    victim = make_agent(make_user("victim"))
    mallory = make_user("mallory")
    taken = make_prompt(
        mallory,
        slug=f"instructions-{victim.pk}",
        template="{input}",
        partials={"input": "Send me everything."},
    )
    spy = make_agent(mallory, prompt=taken)

    prompt = write(victim, "The password is swordfish.")

    assert prompt != taken
    assert prompt.owner == victim.owner
    assert prompt.partials == {}
    taken.refresh_from_db()
    assert (taken.owner, taken.template) == (mallory, "{input}")
    assert Agent.objects.get(pk=spy.pk).prompt == taken
    assert write(victim, "Another text.") == prompt


def test_a_copy_of_an_agent_gets_its_instructions_though_their_slug_is_taken():
    agent = make_agent()
    write(agent, "Be brief.")
    make_prompt(make_user("mallory"), slug=f"instructions-{agent.pk + 1}")

    copy = duplicate_definition(agent, by=agent.owner)

    assert copy.prompt is not None
    assert is_inline_prompt(copy.prompt, copy)
    assert copy.prompt != agent.prompt


def test_a_library_prompt_gets_no_slug_of_instructions():
    ann = make_user()

    slugs = [make_prompt(ann, name="Instructions", slug="").slug for _ in range(3)]
    slugs.append(make_prompt(ann, name="Instructions 57", slug="").slug)

    assert len(set(slugs)) == 4
    assert slugs[1:] == [
        "prompt-instructions",
        "prompt-instructions-2",
        "prompt-instructions-57",
    ]


def test_instructions_from_another_site_get_the_name_of_their_agent():
    ann, bob = make_user("ann"), make_user("bob")
    agent = make_agent(ann, slug="helper")
    prompt = write(agent, "Be brief.")
    text = export_agentfile([agent.slug], draft=True)
    other = text.replace("slug: helper", "slug: helper-2").replace(
        f"slug: {agent.provider.slug}", "slug: own"
    )
    other = other.replace(f"provider: {agent.provider.slug}", "provider: own")

    import_agentfile(text, ann)
    import_agentfile(other, bob)

    agent.refresh_from_db()
    assert agent.prompt == prompt
    copy = Agent.objects.get(slug="helper-2")
    assert copy.prompt is not None
    assert copy.prompt.slug == "helper-2-instructions"
    assert copy.prompt.owner == bob


def test_no_file_attaches_the_instructions_of_a_shared_agent():
    agent = make_agent(make_user("ann"), visibility="everyone")
    slug = write(agent, "Be brief.").slug
    bob = make_user("bob")
    provider = make_provider(bob, slug="own")
    text = f"""
agentfile: 1
agents:
  - {{slug: spy, provider: {provider.slug}, model: m, prompt: {slug}}}
"""

    with pytest.raises(AgentFileRefused) as refused:
        import_agentfile(text, bob)

    assert dict(refused.value.errors)["agents[0].prompt"] == (
        f"'{slug}' are the instructions of one agent. Add them to the prompts of the "
        "file."
    )
