"""Start test runs of an agent: a test chat, or several runs side by side."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import transaction

from runs.engine.types import AgentSpec
from runs.models import Agent, AgentVersion, Conversation, Provider, Run
from runs.services.runs.conversation_runs import require_finished_answers
from runs.services.runs.start import FrozenAgent, start_run
from runs.services.spec.freeze import (
    freeze_agent,
    use_model,
    validate_spec,
    variables_of_spec,
)
from runs.store.specs import get_or_create_spec, load_spec


@dataclass(frozen=True)
class TrialVariant:
    """One column: the draft or a version, perhaps with another model."""

    version: AgentVersion | None = None
    provider: Provider | None = None
    """Set together with `model`; None keeps the agent's model."""
    model: str = ""


@transaction.atomic
def start_test_chat_run(
    agent: Agent, *, by: User, inputs: dict[str, str], conversation: Conversation | None
) -> Run:
    """Return a test run of the draft in `conversation`, or in a new test chat.

    Raises what `start_run` raises, and `AnswerUnfinished` if the draft would miss an
    answer; nothing is stored then.
    """
    if conversation is None:
        conversation = Conversation.objects.create(owner=by, agent=agent, is_test=True)
    elif agent.memory:
        require_finished_answers(conversation)
    return start_run(
        agent, by=by, inputs=inputs, conversation=conversation, draft=True, is_test=True
    )


@transaction.atomic
def start_comparison(
    agent: Agent,
    *,
    by: User,
    inputs: dict[str, str],
    contenders: Sequence[TrialVariant],
) -> list[Run]:
    """Return a test run of each variant with the same inputs; all of them, or none.

    Each gets the inputs that its prompt has. Raises what `start_run` raises.
    """
    runs = []
    for one in contenders:
        frozen = freeze_variant(agent, one)
        names = variables_of_spec(frozen.spec)
        given = {name: inputs[name] for name in names if name in inputs}
        runs.append(start_run(agent, by=by, inputs=given, is_test=True, frozen=frozen))
    return runs


def freeze_variant(agent: Agent, one: TrialVariant) -> FrozenAgent:
    """Return what a run of `one` runs; raise `SpecRefused` if it cannot run.

    With another model it is no longer a run of the version, but of a draft of it.
    """
    if one.version is not None and one.provider is None:
        return FrozenAgent(load_spec(one.version.spec), one.version.spec, one.version)
    spec = load_spec(one.version.spec) if one.version else freeze_agent(agent)
    if one.provider is not None:
        spec = replace_model(spec, one.provider, one.model)
    validate_spec(spec)
    return FrozenAgent(spec, get_or_create_spec(spec), None)


def replace_model(spec: AgentSpec, provider: Provider, model: str) -> AgentSpec:
    """Return `spec` with another model and the same parameters."""
    settings = spec.model.model_copy(
        update={
            "model": model,
            "provider": provider.slug,
            "provider_id": provider.pk,
            "stream": provider.stream,
        }
    )
    return use_model(spec, settings)
