"""The first start: somebody who can sign in, the built-in tools, and the demo."""

from typing import NamedTuple

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction

from runs.models import Agent, AgentTool, Provider, ProviderModel
from runs.services.publish_agent import publish_agent
from tools.models import Tool
from tools.ownership import Visibility
from tools.services import ensure_builtin_tools

OPERATOR = "admin"
DEMO_PROVIDER = "demo"
DEMO_MODEL = "demo-planner"
DEMO_AGENT = "travel-planner"
DEMO_TOOL = "weather-sample"
DEMO_CALLER = "trip-chooser"


class DemoAgent(NamedTuple):
    """An agent that shows something that can happen to a run."""

    slug: str
    name: str
    description: str
    model: str = DEMO_MODEL
    policy: str = AgentTool.Policy.DEFAULT
    rounds: int | None = None


PLANNER = DemoAgent(
    DEMO_AGENT,
    "Travel planner",
    "Looks at the weather of a city and plans a day out.",
)
CALLER = DemoAgent(
    DEMO_CALLER,
    "Trip chooser",
    "Asks the travel planner about several cities, and compares.",
)
CAUTIOUS = DemoAgent(
    "cautious-planner",
    "Cautious planner",
    "Asks you before it looks at the weather.",
    policy=AgentTool.Policy.ASK,
)
HASTY = DemoAgent(
    "hasty-planner",
    "Hasty planner",
    "May ask its model once only, so it stops at its limit: resume it with a new one.",
    rounds=1,
)
UNLUCKY = DemoAgent(
    "unlucky-planner",
    "Unlucky planner",
    "Its model is always busy, so it fails: fork the run with the model demo-planner.",
    model="demo-fails",
)


DEMO_SLUGS = tuple(one.slug for one in (PLANNER, CALLER, CAUTIOUS, HASTY, UNLUCKY))


class Bootstrapped(NamedTuple):
    """Who runs this installation, and whether the demo was made just now."""

    operator: User
    made_demo: bool


@transaction.atomic
def bootstrap() -> Bootstrapped:
    """Make what is missing; change nothing that is there, however often it is called.

    The demo is made once, where settings ask for it and there is no provider and no
    agent yet; so what a person changed, archived or deleted stays that way.
    """
    operator = the_operator()
    ensure_builtin_tools(operator)
    has_demo = settings.DEMO and not (
        Provider.objects.exists() or Agent.objects.exists()
    )
    if has_demo:
        make_demo(operator)
    return Bootstrapped(operator, has_demo)


def the_operator() -> User:
    """Return the first active superuser; make `admin`, without password, if none."""
    found = (
        User.objects.filter(is_superuser=True, is_active=True).order_by("pk").first()
    )
    if found is not None:
        return found
    name, number = OPERATOR, 1
    while User.objects.filter(username=name).exists():
        number += 1
        name = f"{OPERATOR}-{number}"
    # Without a password nobody signs in but by a login link, until one is set.
    return User.objects.create_superuser(name, password=None)


def make_demo(owner: User) -> None:
    """Make the offline provider, agents that plan a day out, and one that asks one."""
    provider = Provider.objects.create(
        slug=DEMO_PROVIDER,
        name="Demo (no network)",
        kind="demo",
        default_model=DEMO_MODEL,
        owner=owner,
        visibility=Visibility.EVERYONE,
    )
    ProviderModel.objects.create(
        provider=provider, name=DEMO_MODEL, functions=True, streaming=True
    )
    planner = _make_agent(PLANNER, provider=provider)
    for variant in (CAUTIOUS, HASTY, UNLUCKY):
        _make_agent(variant, provider=provider)
    _make_agent(CALLER, provider=provider, calls=planner)


def _make_agent(
    demo: DemoAgent, *, provider: Provider, calls: Agent | None = None
) -> Agent:
    """Make and publish an agent that calls another one, or looks at the weather."""
    owner = provider.owner
    agent = Agent.objects.create(
        slug=demo.slug,
        name=demo.name,
        description=demo.description,
        kind="tool-calling",
        provider=provider,
        model=demo.model,
        executor={"max_iterations": demo.rounds} if demo.rounds else {},
        owner=owner,
        visibility=Visibility.EVERYONE,
    )
    tool = None if calls else Tool.objects.filter(slug=DEMO_TOOL).first()
    if tool or calls:
        AgentTool.objects.create(
            agent=agent, tool=tool, sub_agent=calls, policy=demo.policy
        )
    publish_agent(agent, by=owner, note="Made at the first start")
    return agent
