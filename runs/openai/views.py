"""The OpenAI-compatible endpoints: models, chat completions, responses."""

import re

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from runs.api.bodies import parse_body, read_idempotency_key
from runs.api.dispatch import json_response
from runs.live.run_feed import follow_run
from runs.models import Agent, ApiToken, Conversation, Run
from runs.openai.bodies import ChatBody, InputMessage, ResponsesBody, check_parameters
from runs.openai.chat import ChatAnswer
from runs.openai.errors import OpenAiError
from runs.openai.messages import SplitMessages, split_messages
from runs.openai.relay import Relay
from runs.openai.responses import ResponseHead, ResponsesAnswer, ended_response_json
from runs.openai.start import StartedRun, find_requested_agent, start_requested_run
from runs.serializers import Json, run_json
from runs.services.runs.cancel import cancel_run
from runs.services.runs.conversation_runs import get_conversation_turns
from runs.services.runs.start import EarlierTurn
from runs.store.history import build_turn, load_earlier_turns

RESPONSE_ID = re.compile(r"resp_(\d{1,18})")


def list_models(request: HttpRequest, token: ApiToken) -> HttpResponse:
    """`GET /v1/models`: the agents that the user may run."""
    agents: QuerySet[Agent] = Agent.objects.usable_by(token.user)
    rows = agents.select_related("owner").order_by("slug")
    return json_response(
        {"object": "list", "data": [agent_model_json(a) for a in rows]}
    )


def read_model(request: HttpRequest, token: ApiToken, model: str) -> HttpResponse:
    """`GET /v1/models/{model}`: one agent, or one version of it."""
    agent, _ = find_requested_agent(token, model)
    return json_response(agent_model_json(agent) | {"id": model})


def agent_model_json(agent: Agent) -> Json:
    return {
        "id": agent.slug,
        "object": "model",
        "created": int(agent.created_at.timestamp()),
        "owned_by": agent.owner.get_username(),
        "name": agent.name,
        "description": agent.description,
    }


def create_chat_completion(request: HttpRequest, token: ApiToken) -> HttpResponse:
    """`POST /v1/chat/completions`: run an agent, and wait for its answer."""
    body = parse_body(request.body, ChatBody)
    check_parameters(body)
    asked = split_messages(body.messages, param="messages")
    started = start_requested_run(request, token, body, asked)
    answer = ChatAnswer(
        run_id=started.run.pk,
        model=body.model,
        created=int(started.run.created_at.timestamp()),
        wants_steps=bool(body.include_reasoning),
        includes_usage=body.includes_usage,
    )
    relay = Relay(
        follow_run(request, token.user, started.run.pk),
        answer,
        started.streams_text,
        cancels=is_canceled_without_client(request, started),
    )
    return relay.respond(stream=bool(body.stream))


def create_response(request: HttpRequest, token: ApiToken) -> HttpResponse:
    """`POST /v1/responses`: run an agent; with `background`, without waiting."""
    body = parse_body(request.body, ResponsesBody)
    check_parameters(body)
    asked, conversation = read_response_input(body, token)
    started = start_requested_run(
        request, token, body, asked, conversation=conversation
    )
    head = ResponseHead(
        run_id=started.run.pk,
        model=body.model,
        created_at=int(started.run.created_at.timestamp()),
        metadata=body.variables,
        previous_response_id=body.previous_response_id,
        background=bool(body.background),
    )
    if body.background and not body.stream:
        return json_response(ended_response_json(head, run_json(started.run), []))
    relay = Relay(
        follow_run(request, token.user, started.run.pk),
        ResponsesAnswer(head, body.wants_steps),
        started.streams_text,
        cancels=not body.background and is_canceled_without_client(request, started),
    )
    return relay.respond(stream=bool(body.stream))


def is_canceled_without_client(request: HttpRequest, started: StartedRun) -> bool:
    """Whether the run ends with the connection: no later request can find it."""
    is_found_again = read_idempotency_key(request) is not None
    return not (is_found_again or started.agent.continues_without_client)


def read_response(request: HttpRequest, token: ApiToken, pk: str) -> HttpResponse:
    """`GET /v1/responses/{id}`: the run as it is now."""
    return json_response(stored_response_json(get_own_run(token, pk)))


def cancel_response(request: HttpRequest, token: ApiToken, pk: str) -> HttpResponse:
    """`POST /v1/responses/{id}/cancel`: cancel the run."""
    run = get_own_run(token, pk)
    cancel_run(run, by=token.user)
    return json_response(stored_response_json(get_own_run(token, pk)))


def read_response_input(
    body: ResponsesBody, token: ApiToken
) -> tuple[SplitMessages, Conversation | None]:
    """Return the message, the turns before it, and the conversation it continues."""
    messages = (
        [InputMessage(role="user", content=body.input)]
        if isinstance(body.input, str)
        else list(body.input)
    )
    if body.instructions:
        messages.insert(0, InputMessage(role="system", content=body.instructions))
    asked = split_messages(messages, param="input")
    if not body.previous_response_id:
        return asked, None
    previous = get_previous_run(token, body.previous_response_id)
    if is_newest_turn(previous, body.model, token):
        return asked, previous.conversation
    earlier = (*load_earlier_turns(previous), build_turn(previous))
    turns = [EarlierTurn(turn.question, turn.answer) for turn in earlier]
    return asked._replace(turns=[*turns, *asked.turns]), None


def get_previous_run(token: ApiToken, response_id: str) -> Run:
    """Return the run of an earlier response; raise an error if it has no answer yet."""
    named = RESPONSE_ID.fullmatch(response_id)
    run = find_visible_run(token, named[1]) if named else None
    if run is None:
        raise OpenAiError(
            f"Previous response with id {response_id[:60]!r} not found.",
            code="previous_response_not_found",
            param="previous_response_id",
        )
    if not run.is_over:
        raise OpenAiError(
            f"Response {response_id!r} has not ended.",
            code="previous_response_unfinished",
            param="previous_response_id",
        )
    return run


def is_newest_turn(run: Run, model: str, token: ApiToken) -> bool:
    """Whether the next message to this agent continues the run's conversation."""
    conversation = run.conversation
    if conversation is None or run.agent.slug != model.partition("@")[0]:
        return False
    if conversation.owner_id != token.user_id or conversation.is_test:
        return False
    if conversation.archived_at is not None:
        return False
    return not get_conversation_turns(conversation).filter(pk__gt=run.pk).exists()


def get_own_run(token: ApiToken, pk: str) -> Run:
    """Return the run of a response; raise a 404."""
    run = find_visible_run(token, pk)
    if run is None:
        raise OpenAiError(
            f"Response with id 'resp_{pk}' not found.",
            code="response_not_found",
            status=404,
        )
    return run


def find_visible_run(token: ApiToken, pk: str) -> Run | None:
    runs = Run.objects.visible_to(token.user).filter(pk=int(pk))
    return runs.select_related("agent", "version", "conversation__branch_of").first()


def stored_response_json(run: Run) -> Json:
    """Return the response of a run, without what the agent did meanwhile."""
    shape = run_json(run)
    version = f"@{run.version.number}" if run.version else ""
    head = ResponseHead(
        run_id=run.pk,
        model=run.agent.slug + version,
        created_at=int(run.created_at.timestamp()),
    )
    answer = ResponsesAnswer(head)
    if run.is_over:
        return answer.build_whole([], shape)
    return ended_response_json(head, shape, [])
