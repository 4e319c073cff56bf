"""A site with an agent whose tool fails: `python -m tests.browser.seed.fork`."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings")
django.setup()

from django.core.management import call_command  # noqa: E402  # after the set-up

from runs.models import Agent  # noqa: E402
from runs.services.agents.publish import publish_agent  # noqa: E402
from tests.make import make_agent, make_tool, make_user  # noqa: E402


def seed() -> None:
    """Make the demo, and an agent that ends when its weather service is away."""
    call_command("bootstrap")
    demo = Agent.objects.get(slug="travel-planner")
    ann = make_user("ann", password="secret", is_superuser=True)
    weather = make_tool(
        ann,
        name="weather_service",
        kind="http",
        on_error="end",
        args_schema={
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
        config={"method": "GET", "url": "http://127.0.0.1:9/{city}"},
    )
    agent = make_agent(
        ann,
        name="brittle",
        provider=demo.provider,
        model=demo.model,
        parameters={"words_per_second": 400},
        tools=(weather,),
    )
    publish_agent(agent, by=ann)


if __name__ == "__main__":
    seed()
