"""What the soak needs in the database: a person, a token, an agent with tools."""

from django.contrib.auth.models import User

from runs.models import Agent
from runs.services.accounts.tokens import create_token
from tests.make import make_agent, make_provider, make_tool
from tests.soak import functions
from tests.soak.model import TIMEOUT_SECONDS
from tests.worker.run_parts import ask_before
from tools.models import Tool
from tools.registry import get_registered_functions

TOOLS = ("look", "put", "pay", "sign")


def prepare(base_url: str) -> tuple[str, User]:
    """Make the agent `soak`; return a token and its owner."""
    user = User.objects.create_superuser("soak", password="soak")
    provider = make_provider(user, base_url=base_url, timeout=TIMEOUT_SECONDS)
    tools = tuple(tool_of(user, name) for name in TOOLS)
    agent: Agent = make_agent(user, slug="soak", provider=provider, tools=tools)
    ask_before(agent, "sign")
    return create_token(user), user


def tool_of(owner: User, name: str) -> Tool:
    """Make the tool of one of the soak's functions."""
    path = f"{functions.__name__}:{name}"
    function = get_registered_functions()[path]
    return make_tool(
        owner,
        name=name,
        config={"function": path},
        args_schema=function.args_schema,
        effect=function.effect,
        timeout=function.timeout or 60.0,
    )
