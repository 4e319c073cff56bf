"""Start the run that a request asks for: agent, version, message, variables."""

import hashlib
from typing import NamedTuple

from django.http import HttpRequest

from runs.api.bodies import read_idempotency_key
from runs.engine.kinds.registry import get_kind_of_spec
from runs.engine.types import AgentSpec
from runs.live.asgi import STREAM_RETRY_SECONDS, TOO_MANY_STREAMS, live_app
from runs.models import Agent, ApiToken, Conversation, Run
from runs.openai.bodies import EndpointBody
from runs.openai.errors import OpenAiError, model_not_found, too_many_requests
from runs.openai.messages import SplitMessages
from runs.services.conversations.find import find_continued_conversation
from runs.services.errors import VersionNotFound
from runs.services.runs.idempotency import IdempotencyKeyReused, start_run_once
from runs.services.runs.start import (
    FrozenAgent,
    freeze_newest_version,
    freeze_version,
    start_run,
)
from runs.services.spec.definition import uses_memory
from runs.services.spec.freeze import variables_of_spec
from runs.whole_number import parse_whole_number


class StartedRun(NamedTuple):
    """A run, its agent, and whether the text that its model writes is its answer."""

    run: Run
    agent: Agent
    streams_text: bool


class RequestedAgent(NamedTuple):
    """What `model` names."""

    agent: Agent
    frozen: FrozenAgent


def find_requested_agent(token: ApiToken, model: str) -> RequestedAgent:
    """Return the agent of `slug`, or a version of `slug@3`; raise a 404."""
    slug, at, version = model.partition("@")
    agents = Agent.objects.usable_by(token.user).select_related("owner")
    agent = agents.filter(slug=slug).first() if "\0" not in slug else None
    number = parse_whole_number(version)
    if agent is None or at and number is None:
        raise model_not_found(model)
    if number is None:
        return RequestedAgent(agent, freeze_newest_version(agent))
    try:
        return RequestedAgent(agent, freeze_version(agent, number))
    except VersionNotFound as error:
        raise OpenAiError(
            str(error), code="model_not_found", status=404, param="model"
        ) from None


def start_requested_run(
    request: HttpRequest,
    token: ApiToken,
    body: EndpointBody,
    asked: SplitMessages,
    *,
    conversation: Conversation | None = None,
) -> StartedRun:
    """Start a run; with an `Idempotency-Key`, once. Raises what `start_run` raises."""
    user = token.user
    if live_app.has_too_many_streams(user.pk):
        raise too_many_requests(TOO_MANY_STREAMS, retry_seconds=STREAM_RETRY_SECONDS)
    agent, frozen = find_requested_agent(token, body.model)
    inputs = build_inputs(frozen.spec, asked.message, body.variables)
    turns = asked.turns
    if turns and conversation is None and uses_memory(agent, frozen.version):
        conversation = find_continued_conversation(agent, turns, owner=user)
        turns = [] if conversation is not None else turns

    def start() -> Run:
        return start_run(
            agent,
            by=user,
            inputs=inputs,
            conversation=conversation,
            source=Run.Source.API,
            frozen=frozen,
            given_turns=turns,
        )

    try:
        started = start_run_once(
            start,
            user=user,
            key=read_idempotency_key(request),
            body_digest=hashlib.sha256(request.body).hexdigest(),
        )
    except IdempotencyKeyReused as error:
        raise OpenAiError(
            str(error), code="idempotency_key_reused", status=409
        ) from None
    return StartedRun(started.run, agent, is_answer_streamed(frozen.spec))


def build_inputs(
    spec: AgentSpec, message: str, variables: dict[str, str]
) -> dict[str, str]:
    """Return the inputs of a run: the message is `input`, or the first variable."""
    names = variables_of_spec(spec)
    name = "input" if "input" in names or not names else names[0]
    if name in variables:
        raise OpenAiError(
            f"The last message is the variable {name!r}. Leave it out of `metadata`.",
            code="invalid_value",
            param=f"metadata.{name}",
        )
    return {name: message, **variables}


def is_answer_streamed(spec: AgentSpec) -> bool:
    """Whether text that the model writes can be sent as the answer at once.

    Not if it is a text format with thoughts and calls, a summary, or something that
    is parsed before it is the answer.
    """
    options = spec.executor
    return (
        get_kind_of_spec(spec).needs_functions
        and options.output_schema is None
        and options.output_parser is None
        and options.context_method != "summary"
    )
