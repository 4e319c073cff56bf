"""Conversations in the API: turns, the next message, branches."""

from typing import Annotated, Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from pydantic import Field

from runs.api.bodies import StrictBody
from runs.api.dispatch import json_response
from runs.api.problems import ApiProblem, field_problem, not_found
from runs.api.queries import Id, Page, PageQuery, paginate_by_id
from runs.api.route import Route
from runs.api.run_list import listed_run_json
from runs.api.runs import get_agent_for_user, new_run_json, prefix_field_errors
from runs.api.shapes import RunListShape, RunWithStepsShape, Shape
from runs.models import Agent, Conversation, Run
from runs.serializers import RUN_RELATIONS, Json, format_timestamp
from runs.services.agents.publish import get_latest_version
from runs.services.conversations.messages import (
    branch_conversation,
    update_all_branches,
)
from runs.services.errors import (
    AnswerUnfinished,
    InputsRefused,
    NotAllowed,
    SpecRefused,
)
from runs.services.runs.conversation_runs import (
    get_conversation_turns,
    require_finished_answers,
)
from runs.services.runs.start import start_run
from runs.services.spec.definition import uses_memory


class ConversationQuery(PageQuery):
    """Which conversations."""

    agent: Annotated[str, Field(max_length=80)] = ""
    """Slug."""
    archived: bool = False


class NewConversationBody(StrictBody):
    """The body of `POST /api/v1/conversations`."""

    agent: str
    """Slug."""
    title: Annotated[str, Field(max_length=200)] = ""


class ConversationBody(StrictBody):
    """What can be changed of a conversation; what is left out stays."""

    title: Annotated[str, Field(min_length=1, max_length=200)] = ""
    archived: bool = False


class TurnBody(StrictBody):
    """The next message."""

    inputs: dict[str, Any]


class BranchBody(StrictBody):
    """Another message in place of that of a run."""

    run: Id
    inputs: dict[str, Any] | None = None
    """Null for those of the run, for another answer."""


class ConversationShape(Shape):
    """Consecutive runs of one agent."""

    id: int
    agent: str
    title: str
    branch_of: int | None
    """The conversation that has the turns before `branch_at`."""
    branch_at: int | None
    """The run that this branch replaces."""
    created_at: str
    archived_at: str | None


def conversation_json(conversation: Conversation) -> Json:
    return {
        "id": conversation.pk,
        "agent": conversation.agent.slug,
        "title": conversation.title,
        "branch_of": conversation.branch_of_id,
        "branch_at": conversation.branch_at,
        "created_at": format_timestamp(conversation.created_at),
        "archived_at": format_timestamp(conversation.archived_at),
    }


def list_own(user: User) -> QuerySet[Conversation]:
    """Return the user's conversations with agents that they may see."""
    agents = Agent.objects.visible_to(user).filter(is_playground=False)
    rows = Conversation.objects.filter(owner=user, agent__in=agents, is_test=False)
    return rows.select_related("agent", "branch_of")


def get_own(user: User, pk: str) -> Conversation:
    found = list_own(user).filter(pk=int(pk)).first()
    if found is None:
        raise not_found("Conversation", pk)
    return found


def list_conversations(
    request: HttpRequest, user: User, query: ConversationQuery
) -> HttpResponse:
    """Your conversations, the newest first."""
    rows = list_own(user).filter(archived_at__isnull=not query.archived)
    if query.agent:
        rows = rows.filter(agent__slug=query.agent)
    return json_response(paginate_by_id(rows, query, conversation_json))


def read_conversation(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """One of your conversations."""
    return json_response(conversation_json(get_own(user, pk)))


def create_conversation(
    request: HttpRequest, user: User, body: NewConversationBody
) -> HttpResponse:
    """Create an empty conversation with an agent."""
    agent = get_agent_for_user(user, body.agent)
    made = Conversation.objects.create(owner=user, agent=agent, title=body.title)
    location = reverse("api-conversation", args=[made.pk])
    return json_response(conversation_json(made), 201, Location=location)


def change_conversation(
    request: HttpRequest, user: User, pk: str, body: ConversationBody
) -> HttpResponse:
    """Rename or archive a conversation with its branches."""
    conversation, sent = get_own(user, pk), body.model_fields_set
    if "title" in sent:
        title = " ".join(body.title.split())
        if not title:
            raise field_problem("title", "Enter a title of 1 to 200 characters.")
        update_all_branches(conversation, title=title)
    if "archived" in sent:
        at = timezone.now() if body.archived else None
        update_all_branches(conversation, archived_at=at)
    return json_response(conversation_json(get_own(user, pk)))


def list_turns(
    request: HttpRequest, user: User, pk: str, query: PageQuery
) -> HttpResponse:
    """The runs of a conversation, the first ones first."""
    rows = get_conversation_turns(get_own(user, pk))
    rows = rows.select_related(*RUN_RELATIONS, "owner").prefetch_related("tags")
    page = paginate_by_id(rows, query, listed_run_json, oldest_first=True)
    return json_response(page)


def send_turn(
    request: HttpRequest, user: User, pk: str, body: TurnBody
) -> HttpResponse:
    """Start a run with the next message; 409 if the agent would miss an answer."""
    conversation = get_own(user, pk)
    agent = conversation.agent
    try:
        with transaction.atomic():
            if uses_memory(agent, get_latest_version(agent)):
                require_finished_answers(conversation)
            run = start_run(
                agent,
                by=user,
                inputs=body.inputs,
                conversation=conversation,
                source=Run.Source.API,
            )
    except (InputsRefused, SpecRefused, NotAllowed) as error:
        raise start_problem(error) from None
    return respond_with_run(run)


def branch_turns(
    request: HttpRequest, user: User, pk: str, body: BranchBody
) -> HttpResponse:
    """Start a run in a new branch; earlier turns are part of both."""
    conversation = get_own(user, pk)
    at = get_conversation_turns(conversation).filter(pk=body.run).first()
    if at is None:
        message = f"Run {body.run} is not part of this conversation."
        raise field_problem("run", message)
    inputs = at.inputs if body.inputs is None else body.inputs
    try:
        run = branch_conversation(conversation, at=at, by=user, inputs=inputs)
    except (InputsRefused, SpecRefused, NotAllowed) as error:
        raise start_problem(error) from None
    return respond_with_run(run)


def start_problem(error: InputsRefused | SpecRefused | NotAllowed) -> ApiProblem:
    match error:
        case InputsRefused():
            return ApiProblem(422, prefix_field_errors("inputs", error.errors))
        case SpecRefused():
            return ApiProblem(422, prefix_field_errors("agent", error.errors))
        case AnswerUnfinished():
            return field_problem("conversation", str(error), 409)
        case _:
            return field_problem("agent", str(error), 403)


def respond_with_run(run: Run) -> HttpResponse:
    location = reverse("api-run", args=[run.pk])
    return json_response(new_run_json(run), 201, Location=location)


ONE = "conversations/{id}"
ROUTES = [
    Route(
        "GET",
        "conversations",
        list_conversations,
        "List conversations",
        Page[ConversationShape],
        query=ConversationQuery,
    ),
    Route(
        "POST",
        "conversations",
        create_conversation,
        "Create a conversation",
        ConversationShape,
        body=NewConversationBody,
        status=201,
        is_idempotent=True,
    ),
    Route("GET", ONE, read_conversation, "Read a conversation", ConversationShape),
    Route(
        "PATCH",
        ONE,
        change_conversation,
        "Change a conversation",
        ConversationShape,
        body=ConversationBody,
    ),
    Route(
        "GET",
        f"{ONE}/turns",
        list_turns,
        "List turns",
        Page[RunListShape],
        query=PageQuery,
    ),
    Route(
        "POST",
        f"{ONE}/turns",
        send_turn,
        "Send a message",
        RunWithStepsShape,
        body=TurnBody,
        status=201,
        errors=(429,),
        cleans_text=True,
        is_idempotent=True,
    ),
    Route(
        "POST",
        f"{ONE}/branches",
        branch_turns,
        "Branch a conversation",
        RunWithStepsShape,
        body=BranchBody,
        status=201,
        errors=(429,),
        cleans_text=True,
        is_idempotent=True,
    ),
]
