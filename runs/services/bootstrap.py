"""The first start: a user who can sign in, the built-in tools and the demo."""

from typing import NamedTuple

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction

from runs.models import Agent, AgentTool, Provider, ProviderModel
from runs.services.agents.publish import publish_agent
from tools.definition.ensure_builtin import ensure_builtin_tools
from tools.models import Tool
from tools.ownership import Visibility

OPERATOR = "admin"
DEMO_PROVIDER = "demo"
DEMO_MODEL = "demo-planner"
DEMO_AGENT = "travel-planner"
DEMO_TOOL = "weather-sample"
DEMO_CALLER = "trip-chooser"
DEMO_QUESTIONS = (
    "Plan a day out in Oslo that fits the weather",
    "根据北京的天气情况，制定一个出游计划",
)
"""Suggested in the chat; the demo model answers in their language."""


class DemoAgent(NamedTuple):
    """An agent that demonstrates one outcome of a run."""

    slug: str
    name: str
    description: str
    model: str = DEMO_MODEL
    policy: str = AgentTool.Policy.DEFAULT
    rounds: int | None = None
    questions: tuple[str, ...] = DEMO_QUESTIONS


PLANNER = DemoAgent(
    DEMO_AGENT,
    "Travel planner",
    "Checks the weather of a city and plans a day trip.",
)
CALLER = DemoAgent(
    DEMO_CALLER,
    "Trip chooser",
    "Asks the travel planner about several cities and compares them.",
    questions=(),
)
CAUTIOUS = DemoAgent(
    "cautious-planner",
    "Cautious planner",
    "Needs your approval before it checks the weather.",
    policy=AgentTool.Policy.ASK,
)
HASTY = DemoAgent(
    "hasty-planner",
    "Hasty planner",
    "Reaches its limit after one round. Resume the run with a higher limit.",
    rounds=1,
)
UNLUCKY = DemoAgent(
    "unlucky-planner",
    "Unlucky planner",
    "Fails because its model is always busy. Fork the run with demo-planner.",
    model="demo-fails",
)


DEMO_SLUGS = tuple(one.slug for one in (PLANNER, CALLER, CAUTIOUS, HASTY, UNLUCKY))


class BootstrapResult(NamedTuple):
    """The operator, and whether the demo was created by this call."""

    operator: User
    has_created_demo: bool


@transaction.atomic
def bootstrap() -> BootstrapResult:
    """Create what is missing; calling it again changes nothing.

    The demo is created once, if the settings ask for it and there are no providers
    and no agents; so what a user changed, archived or deleted stays that way.
    """
    operator = get_or_create_operator()
    ensure_builtin_tools(operator)
    has_demo = settings.DEMO and not (
        Provider.objects.exists() or Agent.objects.exists()
    )
    if has_demo:
        create_demo(operator)
    return BootstrapResult(operator, has_demo)


def get_or_create_operator() -> User:
    """Return the first active superuser; create `admin`, without password, if none."""
    found = (
        User.objects.filter(is_superuser=True, is_active=True).order_by("pk").first()
    )
    if found is not None:
        return found
    name, number = OPERATOR, 1
    while User.objects.filter(username=name).exists():
        number += 1
        name = f"{OPERATOR}-{number}"
    # Without a password only a login link signs in, until one is set.
    return User.objects.create_superuser(name, password=None)


def create_demo(owner: User) -> None:
    """Create the offline provider, demo agents, and an agent that calls one of them."""
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
    planner = _create_demo_agent(PLANNER, provider=provider)
    for variant in (CAUTIOUS, HASTY, UNLUCKY):
        _create_demo_agent(variant, provider=provider)
    _create_demo_agent(CALLER, provider=provider, calls=planner)


def _create_demo_agent(
    demo: DemoAgent, *, provider: Provider, calls: Agent | None = None
) -> Agent:
    """Create and publish an agent that calls another one, or checks the weather."""
    owner = provider.owner
    agent = Agent.objects.create(
        slug=demo.slug,
        name=demo.name,
        description=demo.description,
        kind="tool-calling",
        provider=provider,
        model=demo.model,
        executor={"max_iterations": demo.rounds} if demo.rounds else {},
        memory=True,
        suggested_questions=list(demo.questions),
        owner=owner,
        visibility=Visibility.EVERYONE,
    )
    tool = None if calls else Tool.objects.filter(slug=DEMO_TOOL).first()
    if tool or calls:
        AgentTool.objects.create(
            agent=agent, tool=tool, sub_agent=calls, policy=demo.policy
        )
    publish_agent(agent, by=owner, note="Created at the first start")
    return agent
