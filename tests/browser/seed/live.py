"""A site with agents of several paces: `python -m tests.browser.seed.live`."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings")
django.setup()

from django.core.management import call_command  # noqa: E402  # after the set-up

from runs.models import Agent  # noqa: E402
from runs.services.agents.publish import publish_agent  # noqa: E402
from tests.make import make_user  # noqa: E402


def seed() -> None:
    """Make the demo, with a pace at which a test can look on, and its person."""
    call_command("bootstrap")
    agent = Agent.objects.get(slug="travel-planner")
    ann = make_user("ann", password="secret", is_superuser=True)
    paces = {"brisk": 25, "steady": 6, "slow": 2, "broken": 25}
    demo = agent.model
    for slug, words in paces.items():
        model = "x" if slug == "broken" else demo
        agent.parameters, agent.model = {"words_per_second": words}, model
        agent.slug = agent.name = slug
        tools = list(agent.uses.all())
        agent.pk, agent._state.adding, agent.owner = None, True, ann
        agent.save()
        for use in tools:
            use.pk, use._state.adding, use.agent = None, True, agent
            use.save()
        publish_agent(agent, by=ann)


if __name__ == "__main__":
    seed()
