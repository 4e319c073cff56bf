"""Prompts of the library in the API."""

from typing import Annotated

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from pydantic import Field

from runs.api.definitions.agents import check_kind
from runs.api.definitions.common import (
    Definition,
    DefinitionShape,
    Name,
    SharingBody,
    build_common_routes,
    definition_json,
    save_groups,
    share_definition,
)
from runs.api.problems import ApiProblem, field_problem
from runs.api.route import Route
from runs.api.shapes import Shape
from runs.engine.types import PromptMessage
from runs.forms.prompt import list_prompt_errors
from runs.models import PromptTemplate
from runs.models.agents import INLINE_SLUG
from runs.serializers import Json
from runs.services.errors import FieldError
from runs.services.spec.freeze import build_prompt_spec


class PromptFields(SharingBody):
    """What can be changed of a prompt; what is left out stays."""

    kind: Annotated[str, Field(max_length=30)] = "react"
    """The kind of agent that it is written for."""
    template: str | None = None
    """One text; send this or `messages`."""
    messages: Annotated[list[PromptMessage], Field(max_length=100)] | None = None
    partials: dict[str, str] = {}
    """Values of variables that are the same in every run."""


class NewPromptBody(PromptFields):
    """The body of `POST /api/v1/prompts`."""

    name: Name


class PromptBody(PromptFields):
    """The body of `PATCH /api/v1/prompts/{id}`."""

    name: Name = ""


class PromptSummaryShape(DefinitionShape):
    """A prompt in a list."""

    kind: str


class MessageShape(Shape):
    """A message of a chat prompt."""

    role: str
    template: str


class PromptShape(PromptSummaryShape):
    """A prompt: one text, or chat messages."""

    template: str | None
    messages: list[MessageShape] | None
    partials: dict[str, str]


def prompt_summary(prompt: PromptTemplate) -> Json:
    return {**definition_json(prompt), "kind": prompt.kind}


def prompt_json(prompt: PromptTemplate, user: User) -> Json:
    messages = prompt.messages or None
    return {
        **prompt_summary(prompt),
        "template": None if messages else prompt.template,
        "messages": [
            {"role": one["role"], "template": one["template"]} for one in messages
        ]
        if messages
        else None,
        "partials": prompt.partials,
    }


PROMPTS = Definition(
    "prompt",
    PromptTemplate,
    prompt_summary,
    prompt_json,
    ~Q(slug__regex=INLINE_SLUG),
)


def create_prompt(
    request: HttpRequest, user: User, body: NewPromptBody
) -> HttpResponse:
    """Create a prompt of the library."""
    prompt = PromptTemplate(owner=user)
    with transaction.atomic():
        store_prompt(prompt, body)
    return PROMPTS.respond(user, prompt.pk, 201)


def change_prompt(
    request: HttpRequest, user: User, pk: str, body: PromptBody
) -> HttpResponse:
    """Change a prompt; published versions of agents keep its earlier text."""
    with PROMPTS.edit(request, user, pk) as prompt:
        store_prompt(prompt, body)
    return PROMPTS.respond(user, prompt.pk)


def store_prompt(prompt: PromptTemplate, body: NewPromptBody | PromptBody) -> None:
    """Save the prompt in the caller's transaction; raise a 422."""
    sent = body.model_fields_set
    for name in ("name", "partials"):
        if name in sent:
            setattr(prompt, name, getattr(body, name))
    if "kind" in sent or not prompt.pk:
        prompt.kind = check_kind(body.kind)
    if body.template is not None and body.messages is not None:
        raise field_problem("messages", "Send `template` or `messages`, not both.")
    if body.template is not None:
        prompt.template, prompt.messages = body.template, None
    if body.messages is not None:
        prompt.template = ""
        prompt.messages = [one.model_dump(mode="json") for one in body.messages]
    place = "messages" if prompt.messages else "template"
    if not prompt.template.strip() and not prompt.messages:
        raise field_problem(place, "Enter the text of the prompt.")
    mistakes = list_prompt_errors(prompt.kind, build_prompt_spec(prompt))
    if mistakes:
        raise ApiProblem(422, [FieldError(place, text) for text in mistakes])
    share_definition(prompt, body)
    prompt.save()
    save_groups(prompt, body)


ROUTES = [
    *build_common_routes(PROMPTS, PromptShape, PromptSummaryShape),
    Route(
        "POST",
        "prompts",
        create_prompt,
        "Create a prompt",
        PromptShape,
        scope="build",
        body=NewPromptBody,
        status=201,
        is_idempotent=True,
    ),
    Route(
        "PATCH",
        "prompts/{id}",
        change_prompt,
        "Change a prompt",
        PromptShape,
        scope="build",
        body=PromptBody,
        has_etag=True,
    ),
]
