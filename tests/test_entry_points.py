"""Every way to start a run: limits, approvals, stopping and the audit log hold."""

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from runs.models import Agent, AgentStep, AgentTool, Decision, Run, Schedule
from runs.services.accounts.tokens import create_token
from runs.services.approvals.answer import approve_step
from runs.services.runs.cancel import cancel_run
from runs.services.schedules.fire import fire_due_schedules
from runs.services.spec.freeze import freeze_agent
from runs.store.specs import get_or_create_spec
from tests.fakes.model_server import FakeServer, model_server
from tests.make import make_hook, make_run, make_schedule, make_user, make_version
from tests.services.hooks.test_receive import send
from tests.worker.run_parts import agent_on, ask_before, call, go_on
from tools.models import AuditEntry

pytestmark = pytest.mark.django_db(transaction=True)

QUESTION = "Write to Ann"


def from_page(agent: Agent, path: str, **fields: str) -> str:
    browser = Client()
    browser.force_login(agent.owner)
    return browser.post(path, fields, follow=True).content.decode()


def from_program(agent: Agent, path: str, body: Any) -> str:
    headers = {"Authorization": f"Bearer {create_token(agent.owner)}"}
    answer = Client().post(
        path, json.dumps(body), content_type="application/json", headers=headers
    )
    return str(getattr(answer, "content", b"").decode())


Start = Callable[[Agent], str]
"""Starts a run of an agent by its owner; returns what a refusal says."""


def start_on_page(agent: Agent) -> str:
    return from_page(agent, f"/agents/{agent.pk}/run/", input=QUESTION)


def start_in_chat(agent: Agent) -> str:
    Agent.objects.update(memory=True)
    return from_page(agent, f"/chat/{agent.slug}/say/", input=QUESTION)


def start_by_api(agent: Agent) -> str:
    body = {"agent": agent.slug, "inputs": {"input": QUESTION}}
    return from_program(agent, "/api/v1/runs", body)


def start_by_chat_completions(agent: Agent) -> str:
    messages = [{"role": "user", "content": QUESTION}]
    body = {"model": agent.slug, "messages": messages}
    return from_program(agent, "/v1/chat/completions", body)


def start_by_responses(agent: Agent) -> str:
    body = {"model": agent.slug, "input": QUESTION, "background": True}
    return from_program(agent, "/v1/responses", body)


def start_by_mcp(agent: Agent) -> str:
    Agent.objects.update(is_offered=True)
    params = {"name": agent.slug, "arguments": {"input": QUESTION}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return from_program(agent, "/mcp", body)


def start_by_hook(agent: Agent) -> str:
    hook = make_hook(agent.owner, agent=agent, inputs={"input": "{/text}"})
    return send(hook, {"text": QUESTION}).content.decode()


def start_by_schedule(agent: Agent) -> str:
    past = timezone.now() - timedelta(minutes=1)
    schedule = make_schedule(
        agent.owner, agent=agent, inputs={"input": QUESTION}, next_at=past
    )
    fire_due_schedules()
    schedule.refresh_from_db()
    return schedule.problem


LIMITED = [
    start_on_page,
    start_in_chat,
    start_by_api,
    start_by_chat_completions,
    start_by_responses,
    start_by_mcp,
    start_by_hook,
]
"""Those that a person or a program repeats at will."""


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with model_server(script=[call("send_mail", to="ann@example.com"), "Sent."]) as one:
        yield one


@pytest.fixture
def agent(server: FakeServer) -> Agent:
    """Make an agent that mails if somebody approves."""
    agent = agent_on(server, "send_mail", owner=make_user("ann"), slug="helper")
    ask_before(agent, "send_mail")
    return agent


def publish(agent: Agent) -> None:
    make_version(agent, spec=get_or_create_spec(freeze_agent(agent)))


@pytest.mark.parametrize("start", [*LIMITED, start_by_schedule])
def test_a_call_waits_for_approval_and_the_answer_is_in_the_audit_log(agent, start):
    publish(agent)
    start(agent)
    run = go_on(Run.objects.get())
    step = AgentStep.objects.get()
    assert (run.status, step.status) == ("awaiting_approval", "awaiting_approval")
    assert step.attempts == 0

    approve_step(Decision.objects.get(), by=agent.owner)

    assert go_on(run).status == "succeeded"
    entry = AuditEntry.objects.get(action="approved")
    assert (entry.by, entry.thing) == ("ann", f"send_mail, call 0 of run {run.pk}")


@pytest.mark.parametrize("start", [*LIMITED, start_by_schedule])
def test_a_run_is_stopped_for_good_and_the_audit_log_says_by_whom(agent, start):
    publish(agent)
    start(agent)
    run = go_on(Run.objects.get())

    cancel_run(run, by=agent.owner)

    assert go_on(run).status == "canceled"
    assert not Decision.objects.open().exists()
    assert AgentStep.objects.get().attempts == 0
    entry = AuditEntry.objects.get(action="canceled")
    assert (entry.by, entry.thing) == ("ann", f"run {run.pk}")


@pytest.mark.parametrize("start", [*LIMITED, start_by_schedule])
def test_the_limits_of_the_agent_hold(agent, start):
    agent.executor = {"max_iterations": 1}
    agent.save()
    AgentTool.objects.update(policy="auto")
    publish(agent)
    start(agent)

    assert go_on(Run.objects.get()).status == "limit_reached"


@pytest.mark.parametrize("start", LIMITED)
def test_a_person_has_a_limited_number_of_unfinished_runs(agent, start, settings):
    settings.USER_RUNS = 1
    make_run(agent.owner)

    assert "unfinished run" in start(agent)
    assert Run.objects.count() == 1


def test_a_schedule_waits_for_no_limit_but_for_its_own_run(agent, settings):
    settings.USER_RUNS = 1
    publish(agent)
    start_by_schedule(agent)
    Schedule.objects.update(next_at=timezone.now() - timedelta(minutes=1))
    fire_due_schedules()

    assert Run.objects.count() == 1
    assert Schedule.objects.get().skipped == 1
