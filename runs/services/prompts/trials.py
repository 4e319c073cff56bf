"""Try prompts in the playground: each column is a run of a bare agent.

So a playground call uses the same code as any other, has its limits and its record,
survives a restart, and never blocks a thread of the web server.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from runs.engine.types import (
    AgentSpec,
    ExecutorOptions,
    ModelSettings,
    PromptMessage,
    PromptSpec,
)
from runs.models import Agent, Provider, Run
from runs.services.runs.start import FrozenAgent, start_run
from runs.services.spec.freeze import get_model_prices, validate_spec, variables_of_spec
from runs.store.specs import get_or_create_spec

TIMEOUT_SECONDS = 300.0
"""Timeout of a call."""
KIND = "tool-calling"
"""Without tools it adds nothing to the messages and returns the reply unchanged."""


@dataclass(frozen=True)
class PromptTrial:
    """One column: messages with variables, and the model that receives them."""

    messages: tuple[PromptMessage, ...]
    provider: Provider
    model: str
    parameters: dict[str, Any] = field(default_factory=dict)


@transaction.atomic
def start_prompt_trials(
    tries: Sequence[PromptTrial], *, by: User, inputs: dict[str, str]
) -> list[Run]:
    """Return a test run for each column; all of them, or none.

    Each gets the values of its variables. Raises what `start_run` raises.
    """
    runs = []
    for one in tries:
        agent = get_playground_agent(by, one.provider)
        spec = build_trial_spec(one)
        validate_spec(spec)
        names = variables_of_spec(spec)
        given = {name: inputs[name] for name in names if name in inputs}
        frozen = FrozenAgent(spec, get_or_create_spec(spec), None)
        runs.append(start_run(agent, by=by, inputs=given, is_test=True, frozen=frozen))
    return runs


def build_trial_spec(one: PromptTrial) -> AgentSpec:
    """Return the spec of one column: one round, without tools."""
    model = ModelSettings(
        model=one.model,
        provider=one.provider.slug,
        provider_id=one.provider.pk,
        parameters=one.parameters,
        stream=one.provider.stream,
    )
    return AgentSpec(
        kind=KIND,
        name="Playground",
        prompt=PromptSpec(messages=one.messages),
        model=model,
        executor=ExecutorOptions(
            max_iterations=1,
            max_execution_time=TIMEOUT_SECONDS,
            handle_parsing_errors=False,
        ),
        prices=get_model_prices(model),
    )


def get_playground_agent(user: User, provider: Provider) -> Agent:
    """Return the bare agent of a user, to which the runs belong."""
    found = Agent.objects.filter(owner=user, is_playground=True).order_by("pk").first()
    if found is not None:
        return found
    return Agent.objects.create(
        owner=user,
        name="Playground",
        description="Runs prompts of the playground.",
        is_playground=True,
        provider=provider,
        model=provider.default_model,
    )
