"""People, agents and specs for the lists that are measured, and who looks at them."""

from importlib import import_module

from django.db import connection

from runs.engine.types import ModelSettings
from tests.bench.loads.run_page_load import open_session
from tests.make import (
    make_agent,
    make_provider,
    make_spec,
    make_tool,
    make_user,
    make_version,
)


def count_runs() -> None:
    """Fill the counters of the home page, as the migrations of an old site do."""
    import_module("runs.migrations.0040_run_slots").fill_slots(connection)
    import_module("runs.migrations.0071_test_slots").split_slots(connection)
    import_module("runs.migrations.0074_run_sums").fill_sums(connection)
    connection.close()


def prepare(*, people: int, agents: int, tools: int) -> dict[str, str]:
    """Make them; return the cookies of a member and of an administrator."""
    boss = make_user("boss", is_superuser=True)
    members = [make_user() for _ in range(people - 1)]
    provider = make_provider(boss)
    offered = [make_tool(boss, visibility="everyone") for _ in range(tools)]
    for n in range(agents):
        agent = make_agent(
            boss,
            provider=provider,
            model=f"model-{n}",
            tools=tuple(offered[:7]),
            visibility="everyone",
        )
        make_version(agent, spec=make_spec(model=ModelSettings(model=f"model-{n}")))
    cookies = {"member": open_session(members[0]), "administrator": open_session(boss)}
    connection.close()
    return cookies
