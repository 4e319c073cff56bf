"""Starting tests of an agent: a turn of a test chat, or several runs side by side."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import transaction

from runs.engine.types import AgentSpec
from runs.models import Agent, AgentVersion, Conversation, Provider, Run
from runs.services.freeze_agent import (
    freeze_agent,
    refuse_flaws,
    spec_of,
    spec_row,
    variables_of_spec,
)
from runs.services.prices_of import prices_of
from runs.services.start_run import Frozen, start_run


@dataclass(frozen=True)
class Contender:
    """One column: the draft or a version, with its own model or another one."""

    version: AgentVersion | None = None
    provider: Provider | None = None
    """With `model`; None for the model it has."""
    model: str = ""


@transaction.atomic
def start_test_turn(
    agent: Agent, *, by: User, inputs: dict[str, str], talk: Conversation | None
) -> Run:
    """Return a test run of the draft in `talk`, or in a new test chat.

    Raises what `start_run` raises; nothing is stored then.
    """
    if talk is None:
        talk = Conversation.objects.create(owner=by, agent=agent, is_test=True)
    return start_run(
        agent, by=by, inputs=inputs, conversation=talk, draft=True, is_test=True
    )


@transaction.atomic
def start_side_by_side(
    agent: Agent, *, by: User, inputs: dict[str, str], contenders: Sequence[Contender]
) -> list[Run]:
    """Return a test run of each contender with the same inputs; all of them, or none.

    Each gets the inputs that its prompt asks for. Raises what `start_run` raises.
    """
    runs = []
    for one in contenders:
        frozen = freeze_contender(agent, one)
        names = variables_of_spec(frozen.spec)
        given = {name: inputs[name] for name in names if name in inputs}
        runs.append(start_run(agent, by=by, inputs=given, is_test=True, frozen=frozen))
    return runs


def freeze_contender(agent: Agent, one: Contender) -> Frozen:
    """Return what a run of `one` is made of; raise `SpecRefused` where it cannot run.

    With another model it is no run of the version any more, but of a draft of it.
    """
    if one.version is not None and one.provider is None:
        return Frozen(spec_of(one.version.spec), one.version.spec, one.version)
    spec = spec_of(one.version.spec) if one.version else freeze_agent(agent)
    if one.provider is not None:
        spec = with_model(spec, one.provider, one.model)
    refuse_flaws(spec)
    return Frozen(spec, spec_row(spec), None)


def with_model(spec: AgentSpec, provider: Provider, model: str) -> AgentSpec:
    """Return `spec` with another model, its parameters kept."""
    settings = spec.model.model_copy(
        update={
            "model": model,
            "provider": provider.slug,
            "provider_id": provider.pk,
            "stream": provider.stream,
        }
    )
    return spec.model_copy(update={"model": settings, "prices": prices_of(settings)})
