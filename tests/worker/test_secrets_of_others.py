"""Who may use a provider of somebody else finds out none of its secrets."""

import pytest

from runs.models import Run
from tests.fakes.model_server import FakeServer, model_server
from tests.make import make_provider, make_user
from tests.worker.run_parts import agent_on, call, executed, function_tool

pytestmark = pytest.mark.django_db(transaction=True)

PIN, KEY = "20481234", "a-key-of-forty-random-letters-and-digits"
GUESSES = f"20481233 {PIN} 20481235"


def run_on_shared_provider(server: FakeServer) -> Run:
    """Run an agent of one user on the provider that another one shares."""
    provider = make_provider(
        make_user(), base_url=server.base_url, visibility="everyone"
    )
    provider.set_key(KEY)
    provider.set_headers(f"x-pin: {PIN}")
    provider.save()
    agent = agent_on(None, owner=make_user(), provider=provider)
    tool = function_tool(agent.owner, "echo_back")
    agent.uses.create(tool=tool, position=0)
    return executed(agent)


def test_a_right_guess_looks_like_the_others():
    script = [call("echo_back", text=f"{GUESSES} {KEY}"), f"{GUESSES} {KEY}"]
    with model_server(script=script) as server:
        run = run_on_shared_provider(server)

    assert run.output == f"{GUESSES} [secret removed]"
    step = run.steps.get()
    assert GUESSES in step.observation
    assert KEY not in step.observation


def test_an_error_of_the_server_shows_no_secret():
    refusal = {"fault": "echo-headers"}
    with model_server(script=[refusal]) as server:
        run = run_on_shared_provider(server)

    assert run.status == "failed"
    assert PIN not in run.error_message
    assert KEY not in run.error_message
