"""Makers: a row of each kind with a default for every field.

A test names only what matters to it: `make_run(status="limit_reached")`.
"""

import hashlib
import itertools
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from runs.engine.types import AgentSpec, ModelSettings, Reply
from runs.models import (
    Agent,
    AgentStep,
    AgentTool,
    AgentVersion,
    Dataset,
    Decision,
    Delivery,
    Hook,
    ModelAttempt,
    ModelCall,
    PromptTemplate,
    Provider,
    Run,
    Schedule,
    Spec,
    Webhook,
    WebhookEvent,
    Worker,
)
from runs.models.runs import FINISHED_STATUSES
from runs.models.webhooks import TEST_EVENT
from runs.services.hooks.manage import generate_hook_key, generate_hook_secret
from runs.services.spec.freeze import freeze_agent
from runs.services.webhooks.sign import generate_webhook_secret
from runs.store.outbox import FACTS
from runs.store.specs import get_or_create_spec
from tools.models import Tool
from tools.secrets import seal

_count = itertools.count(1)


def make_user(name: str = "", *, is_superuser: bool = False, **fields: Any) -> User:
    """Make a person; without a name, a new one each time; the password is `secret`."""
    name = name or f"person{next(_count)}"
    found = User.objects.filter(username=name).first()
    if found:
        return found
    return User.objects.create_user(
        name,
        password=fields.pop("password", "secret"),
        is_superuser=is_superuser,
        is_staff=fields.pop("is_staff", is_superuser),
        **fields,
    )


def make_provider(owner: User | None = None, **fields: Any) -> Provider:
    """Make a provider that would answer at a port where nobody listens."""
    defaults = {
        "name": f"provider {next(_count)}",
        "kind": "openai",
        "base_url": "http://127.0.0.1:9/v1",
        "default_model": "model-a",
    }
    return Provider.objects.create(owner=owner or make_user(), **{**defaults, **fields})


def make_prompt(owner: User | None = None, **fields: Any) -> PromptTemplate:
    """Make a prompt for the kind `tool-calling`, as chat messages."""
    defaults: dict[str, Any] = {
        "name": f"prompt {next(_count)}",
        "kind": "tool-calling",
        "messages": [
            {"role": "system", "template": "Be brief."},
            {"role": "user", "template": "{input}"},
        ],
    }
    if "template" in fields:
        defaults["messages"] = None
    return PromptTemplate.objects.create(
        owner=owner or make_user(), **{**defaults, **fields}
    )


def make_dataset(owner: User | None = None, **fields: Any) -> Dataset:
    """Make a dataset without examples."""
    defaults = {"name": f"dataset {next(_count)}"}
    return Dataset.objects.create(owner=owner or make_user(), **{**defaults, **fields})


def make_tool(owner: User | None = None, **fields: Any) -> Tool:
    """Make an enabled function tool that reads only and never asks."""
    defaults = {
        "name": f"tool_{next(_count)}",
        "description": "Looks something up.",
        "effect": "read",
        "approval": "never",
        "config": {"function": "tests.no:where"},
    }
    return Tool.objects.create(owner=owner or make_user(), **{**defaults, **fields})


def make_agent(
    owner: User | None = None, *, tools: tuple[Tool, ...] = (), **fields: Any
) -> Agent:
    """Make an agent of its owner's own provider, with the given tools."""
    owner = owner or make_user()
    if "provider" not in fields:
        fields["provider"] = make_provider(owner)
    defaults = {"name": f"agent {next(_count)}", "model": "model-a"}
    agent = Agent.objects.create(owner=owner, **{**defaults, **fields})
    for position, tool in enumerate(tools):
        AgentTool.objects.create(agent=agent, tool=tool, position=position)
    return agent


def make_spec(spec: AgentSpec | None = None, **fields: Any) -> Spec:
    """Make the row of a frozen spec; equal specs are one row."""
    fields = {
        "kind": "tool-calling",
        "model": ModelSettings(model="model-a"),
        **fields,
    }
    spec = spec or AgentSpec(**fields)
    digest = hashlib.sha256(spec.model_dump_json().encode()).hexdigest()
    body = spec.model_dump(mode="json")
    row, _ = Spec.objects.get_or_create(digest=digest, defaults={"body": body})
    return row


def make_version(agent: Agent, **fields: Any) -> AgentVersion:
    """Make the next published version of `agent`."""
    number = agent.versions.count() + 1
    spec = fields.pop("spec", None) or make_spec(kind=agent.kind, name=agent.name)
    return AgentVersion.objects.create(
        **{"agent": agent, "number": number, "spec": spec, **fields}
    )


def make_run(
    owner: User | None = None, *, agent: Agent | None = None, **fields: Any
) -> Run:
    """Make a run whose other columns fit its status (queued, if none is given)."""
    owner = owner or (agent.owner if agent else make_user())
    agent = agent or make_agent(owner)
    now = timezone.now()
    if "spec" not in fields:
        fields["spec"] = make_spec(kind=agent.kind, name=agent.name, slug=agent.slug)
    if fields.get("started_at"):
        fields.setdefault("queued_at", fields["started_at"])
    fields = {**fit(fields.get("status", "queued"), now), **fields}
    defaults = {"title": "What is 2 + 2?", "inputs": {"input": "What is 2 + 2?"}}
    return Run.objects.create(owner=owner, agent=agent, **{**defaults, **fields})


def fit(status: str, now: datetime) -> dict[str, Any]:
    """Return the columns that the database's constraints want of `status`."""
    columns: dict[str, Any] = {"queued_at": now}
    if status != "queued":
        columns |= {"started_at": now, "fence": 1}
    if status == "running":
        columns["lease_until"] = now + timedelta(seconds=30)
    if status in FINISHED_STATUSES:
        columns["ended_at"] = now
    if status == "limit_reached":
        columns["stop_reason"] = "iterations"
    if status == "succeeded":
        columns["output"] = "4"
    if status == "failed":
        columns |= {"error_code": "refused", "error_message": "The server said no."}
    return columns


def make_schedule(
    owner: User | None = None, *, agent: Agent | None = None, **fields: Any
) -> Schedule:
    """Make a schedule of a published agent that asks for `input`, due in a year."""
    owner = owner or (agent.owner if agent else make_user())
    if agent is None:
        agent = make_agent(owner)
        make_version(agent, spec=get_or_create_spec(freeze_agent(agent)))
    defaults = {
        "name": f"schedule {next(_count)}",
        "inputs": {"input": "What is new?"},
        "cron": "0 9 * * *",
        "next_at": timezone.now() + timedelta(days=365),
    }
    return Schedule.objects.create(owner=owner, agent=agent, **{**defaults, **fields})


def make_call(run: Run, **fields: Any) -> ModelCall:
    """Make the next model call of `run`, and move the run's counters on."""
    number = fields.setdefault("number", run.next_number)
    run.next_number, run.seq = number + 1, run.seq + 1
    run.model_calls, run.rounds = run.model_calls + 1, run.rounds + 1
    defaults = {
        "at_index": run.next_index,
        "round": number + 1,
        "reply": Reply(text="I look it up.").model_dump(mode="json"),
        "model": "model-a",
        "digest": "0" * 64,
        "input_tokens": 100,
        "output_tokens": 20,
        "started_at": timezone.now(),
        "elapsed": 0.5,
        "created_seq": run.seq,
        "changed_seq": run.seq,
    }
    call = ModelCall.objects.create(run=run, **{**defaults, **fields})
    run.input_tokens += call.input_tokens
    run.output_tokens += call.output_tokens
    run.save()
    return call


def make_attempt(run: Run, **fields: Any) -> ModelAttempt:
    """Make a failed attempt at the next model call of `run`."""
    defaults = {
        "number": run.next_number,
        "attempt": 1,
        "code": "overloaded",
        "message": "The server is busy.",
        "started_at": timezone.now(),
        "elapsed": 0.5,
        "created_seq": run.seq,
    }
    return ModelAttempt.objects.create(run=run, **{**defaults, **fields})


def make_step(run: Run, *, call: ModelCall | None = None, **fields: Any) -> AgentStep:
    """Make the next step of `run`, succeeded, asked for by its last model call."""
    call = call or run.calls.last() or make_call(run)
    index = fields.setdefault("index", run.next_index)
    run.next_index, run.seq = index + 1, run.seq + 1
    run.save()
    defaults: dict[str, Any] = {
        "model_call": call,
        "round": call.round,
        "tool": "calculator",
        "tool_input": {"expression": "2 + 2"},
        "call_id": f"call_{index}",
        "effect": "read",
        "status": "succeeded",
        "started_at": timezone.now(),
        "created_seq": run.seq,
        "changed_seq": run.seq,
    }
    if fields.get("status", "succeeded") == "succeeded":
        defaults |= {"observation": "4", "ended_at": timezone.now(), "duration": 0.1}
    return AgentStep.objects.create(run=run, **{**defaults, **fields})


def make_decision(step: AgentStep, **fields: Any) -> Decision:
    """Make an open question about `step`."""
    defaults = {
        "question": "approval",
        "shown": {"tool": step.tool, "tool_input": step.tool_input},
        "shown_digest": "0" * 64,
    }
    return Decision.objects.create(step=step, **{**defaults, **fields})


def make_webhook(
    owner: User | None = None, *, url: str = "https://a.example/hook", **fields: Any
) -> Webhook:
    """Make a webhook that is told of everything that becomes of its owner's runs."""
    defaults = {
        "name": f"webhook {next(_count)}",
        "events": [event.value for event in WebhookEvent],
        "sealed_secret": seal(generate_webhook_secret()),
    }
    webhook = Webhook(owner=owner or make_user(), **{**defaults, **fields})
    webhook.set_url(url)
    webhook.save()
    return webhook


def make_hook(
    owner: User | None = None,
    *,
    agent: Agent | None = None,
    secret: str = "",
    **fields: Any,
) -> Hook:
    """Make an incoming webhook that asks its agent what was sent."""
    owner = owner or (agent.owner if agent else make_user())
    scheme = fields.get("scheme", Hook.Scheme.STANDARD)
    defaults = {
        "name": f"hook {next(_count)}",
        "key": generate_hook_key(),
        "inputs": {"input": "{/text}"},
        "sealed_secret": seal(secret or generate_hook_secret(scheme)),
    }
    agent = agent or make_agent(owner)
    return Hook.objects.create(owner=owner, agent=agent, **{**defaults, **fields})


def make_delivery(
    webhook: Webhook | None = None, run: Run | None = None, **fields: Any
) -> Delivery:
    """Make a delivery that is due for a second; of a test, where no run is given.

    The clock of SQLite has no more than milliseconds: what is due now is not yet so
    there.
    """
    now = timezone.now()
    over = {"status": "waiting", **fields}["status"] != "waiting"
    defaults: dict[str, Any] = {
        "event": WebhookEvent.FAILED if run else TEST_EVENT,
        "seq": run.seq if run else 0,
        "facts": facts_of(run) if run else {},
        "available_at": None if over else now - timedelta(seconds=1),
        "ended_at": now if over else None,
        "created_at": now,
    }
    return Delivery.objects.create(
        webhook=webhook or make_webhook(), run=run, **{**defaults, **fields}
    )


def facts_of(run: Run) -> dict[str, Any]:
    """Return what the outbox keeps of a run."""
    return {name: getattr(run, name) for name in FACTS if name != "cost"} | {
        "cost": float(run.cost)
    }


def make_worker(**fields: Any) -> Worker:
    """Make a worker that gave a sign of life just now."""
    number, now = next(_count), timezone.now()
    defaults = {
        "name": f"host:{number}",
        "host": "host",
        "pid": number,
        "threads": 50,
        "started_at": now,
        "last_heartbeat": now,
    }
    return Worker.objects.create(**{**defaults, **fields})
