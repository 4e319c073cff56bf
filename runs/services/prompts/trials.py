"""Trying prompts alone: each column is a run of a bare agent, in the background.

So a call of the playground goes through the same code as any other, has its limits and
its record, survives a restart, and never holds a thread of the web server.
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
from runs.services.freeze_agent import refuse_flaws, spec_row, variables_of_spec
from runs.services.prices_of import prices_of
from runs.services.start_run import Frozen, start_run

SECONDS = 300.0
"""After which a call is cut off."""
KIND = "tool-calling"
"""Without tools it adds nothing to the messages, and takes the reply as it is."""


@dataclass(frozen=True)
class PromptTry:
    """One column: messages with variables, and the model that gets them."""

    messages: tuple[PromptMessage, ...]
    provider: Provider
    model: str
    parameters: dict[str, Any] = field(default_factory=dict)


@transaction.atomic
def try_prompts(
    tries: Sequence[PromptTry], *, by: User, inputs: dict[str, str]
) -> list[Run]:
    """Return a test run for each column; all of them, or none.

    Each gets the values of the variables it has. Raises what `start_run` raises.
    """
    runs = []
    for one in tries:
        agent = playground_of(by, one.provider)
        spec = spec_of_try(one)
        refuse_flaws(spec)
        names = variables_of_spec(spec)
        given = {name: inputs[name] for name in names if name in inputs}
        frozen = Frozen(spec, spec_row(spec), None)
        runs.append(start_run(agent, by=by, inputs=given, is_test=True, frozen=frozen))
    return runs


def spec_of_try(one: PromptTry) -> AgentSpec:
    """Return what a run of one column is made of: one round, without tools."""
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
            max_iterations=1, max_execution_time=SECONDS, handle_parsing_errors=False
        ),
        prices=prices_of(model),
    )


def playground_of(user: User, provider: Provider) -> Agent:
    """Return the bare agent of a person; it only lends its name to the runs."""
    found = Agent.objects.filter(owner=user, is_playground=True).order_by("pk").first()
    if found is not None:
        return found
    return Agent.objects.create(
        owner=user,
        name="Playground",
        description="Prompts tried alone.",
        is_playground=True,
        provider=provider,
        model=provider.default_model,
    )
