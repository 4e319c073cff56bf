"""Makers for agents that call one another, and for runs that wait for children."""

from runs.models import Agent, AgentTool, Run
from runs.services.health.invariants import check_invariants
from tests.fakes.model_server import FakeServer
from tests.worker.run_parts import agent_on, go_on


def caller_of(
    server: FakeServer, *agents: Agent, names: tuple[str, ...] = (), **fields
) -> Agent:
    """Make an agent that can call `agents`, of the same owner unless told otherwise."""
    fields.setdefault("owner", agents[0].owner)
    caller = agent_on(server, *names, **fields)
    for position, agent in enumerate(agents, start=len(names)):
        AgentTool.objects.create(agent=caller, sub_agent=agent, position=position)
    return caller


def children_of(run: Run) -> list[Run]:
    """Return the child runs of `run`, oldest first."""
    return list(Run.objects.filter(parent_step__run=run).order_by("pk"))


def finished(run: Run) -> Run:
    """Execute `run` and all that it waits for in this thread, as workers would."""
    for _ in range(30):
        go_on(run)
        if run.status != "waiting":
            break
        for child in children_of(run):
            finished(child)
    sound()
    return run


def sound() -> None:
    """Fail where a rule that runs must keep is broken."""
    assert list(check_invariants()) == []
