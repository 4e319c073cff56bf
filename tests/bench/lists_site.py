"""A signed-in superuser, people, agents and specs for the lists that are measured."""

from django.conf import settings
from django.test import Client

from runs.engine.types import ModelSettings
from tests.make import make_agent, make_provider, make_spec, make_user


def prepare(*, people: int, agents: int) -> Client:
    """Make them; return the superuser's browser."""
    settings.ALLOWED_HOSTS = ["*"]
    boss = make_user("boss", is_superuser=True)
    for _ in range(people - 1):
        make_user()
    provider = make_provider(boss)
    for n in range(agents):
        make_agent(boss, provider=provider, model=f"model-{n}")
        make_spec(model=ModelSettings(model=f"model-{n}"))
    client = Client()
    client.force_login(boss)
    return client
