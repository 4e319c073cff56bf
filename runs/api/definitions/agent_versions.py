"""Versions of agents in the API: publish, list, read, compare, restore."""

from typing import Annotated, Any

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from pydantic import Field

from runs.api.bodies import StrictBody
from runs.api.definitions.agents import AGENTS
from runs.api.definitions.common import noted_change_json
from runs.api.dispatch import json_response
from runs.api.problems import ApiProblem, field_problem, not_found
from runs.api.queries import Id, Page, PageQuery, Query, paginate_by_id
from runs.api.route import Route
from runs.api.shapes import Shape
from runs.models import Agent, AgentVersion
from runs.services.agents.publish import publish_again, publish_draft
from runs.services.agents.restore_version import restore_version
from runs.services.errors import (
    GateNotMet,
    SpecRefused,
    VersionConflict,
    VersionUnchanged,
    VersionUnreadable,
)
from runs.views.agents.version_diff import diff_agent_states
from runs.views.agents.versions import load_agent_state


class PublishBody(StrictBody):
    """A note for the new version."""

    note: Annotated[str, Field(max_length=200)] = ""
    reason: Annotated[str, Field(max_length=1000)] = ""
    """Why to publish a draft that has not passed the gate of the agent."""


class PublishAgainBody(PublishBody):
    """A note for the new version, and which version it replaces."""

    newest: Id
    """Number of the newest version; if there is a later one, nothing is published."""


class VersionSummaryShape(Shape):
    """A published state of an agent."""

    number: int
    note: str
    by: str | None
    at: str


class PublishedShape(VersionSummaryShape):
    """The newest version after publishing."""

    is_new: bool
    """False if nothing had changed."""


class VersionShape(VersionSummaryShape):
    """A published state of an agent, with the frozen description of its runs."""

    spec: dict[str, Any]


class VersionCompareQuery(Query):
    """What to compare with."""

    other: Id | None = None
    """Number of another version; by default the draft."""


class DifferenceShape(Shape):
    """One difference; of long texts, the lines."""

    what: str
    before: str
    after: str
    lines: list[str]


class DifferencesShape(Shape):
    """How one state of an agent differs from another."""

    data: list[DifferenceShape]


class RestoredShape(Shape):
    """What a restore could not bring back."""

    warnings: list[str]


def publish_agent_draft(
    request: HttpRequest, user: User, pk: str, body: PublishBody
) -> HttpResponse:
    """Publish the draft as a new version, which runs use from now on."""
    with AGENTS.edit(request, user, pk) as agent:
        try:
            version, is_new = publish_draft(
                agent, by=user, note=body.note.strip(), reason=body.reason.strip()
            )
        except SpecRefused as error:
            raise ApiProblem(422, error.errors) from None
        except GateNotMet as error:
            raise field_problem("reason", str(error), 409) from None
    location = reverse("api-agent-version", args=[pk, version.number])
    shape = {**noted_change_json(version), "is_new": is_new}
    return json_response(shape, Location=location)


def publish_version_again(
    request: HttpRequest, user: User, pk: str, number: str, body: PublishAgainBody
) -> HttpResponse:
    """Publish an older version as a new one, which runs use from now on.

    The draft does not change.
    """
    with AGENTS.edit(request, user, pk) as agent:
        try:
            version = publish_again(
                get_version(agent, int(number)),
                by=user,
                newest=body.newest,
                note=body.note.strip(),
                reason=body.reason.strip(),
            )
        except SpecRefused as error:
            raise ApiProblem(422, error.errors) from None
        except GateNotMet as error:
            raise field_problem("reason", str(error), 409) from None
        except VersionConflict as error:
            raise field_problem("newest", str(error), 409) from None
        except VersionUnchanged as error:
            raise field_problem("number", str(error), 409) from None
        except VersionUnreadable as error:
            raise field_problem("number", str(error), 422) from None
    location = reverse("api-agent-version", args=[pk, version.number])
    shape = {**noted_change_json(version), "is_new": True}
    return json_response(shape, Location=location)


def list_versions(
    request: HttpRequest, user: User, pk: str, query: PageQuery
) -> HttpResponse:
    """The published versions, the newest first."""
    rows = AgentVersion.objects.filter(agent=AGENTS.require_editable(user, pk))
    rows = rows.select_related("by")
    return json_response(paginate_by_id(rows, query, noted_change_json))


def read_version(
    request: HttpRequest, user: User, pk: str, number: str
) -> HttpResponse:
    """One version, with what its runs get."""
    version = get_version(AGENTS.require_editable(user, pk), int(number))
    return json_response({**noted_change_json(version), "spec": version.spec.body})


def get_version(agent: Agent, number: int) -> AgentVersion:
    rows = AgentVersion.objects.filter(agent=agent, number=number)
    found = rows.select_related("by", "spec").first()
    if found is None:
        raise not_found("Version", number)
    return found


def compare_versions(
    request: HttpRequest, user: User, pk: str, number: str, query: VersionCompareQuery
) -> HttpResponse:
    """How the draft, or another version, differs from this version."""
    agent = AGENTS.require_editable(user, pk)
    old = get_version(agent, int(number))
    new = None if query.other is None else get_version(agent, query.other)
    found = diff_agent_states(
        load_agent_state(agent, old), load_agent_state(agent, new)
    )
    return json_response(
        {
            "data": [
                {
                    "what": str(one.what),
                    "before": one.before,
                    "after": one.after,
                    "lines": [line.text for line in one.lines],
                }
                for one in found
            ]
        }
    )


def restore_agent_version(
    request: HttpRequest, user: User, pk: str, number: str
) -> HttpResponse:
    """Make a version the draft again; published versions do not change."""
    with AGENTS.edit(request, user, pk) as agent:
        version = get_version(agent, int(number))
        warnings = restore_version(version, by=user)
    return json_response({"warnings": [str(one) for one in warnings]})


ROUTES = [
    Route(
        "POST",
        "agents/{id}/publish",
        publish_agent_draft,
        "Publish an agent",
        PublishedShape,
        scope="build",
        body=PublishBody,
        errors=(409, 412),
    ),
    Route(
        "GET",
        "agents/{id}/versions",
        list_versions,
        "List versions",
        Page[VersionSummaryShape],
        query=PageQuery,
    ),
    Route(
        "GET",
        "agents/{id}/versions/{number}",
        read_version,
        "Read a version",
        VersionShape,
    ),
    Route(
        "GET",
        "agents/{id}/versions/{number}/compare",
        compare_versions,
        "Compare versions",
        DifferencesShape,
        query=VersionCompareQuery,
    ),
    Route(
        "POST",
        "agents/{id}/versions/{number}/publish",
        publish_version_again,
        "Publish a version again",
        PublishedShape,
        scope="build",
        body=PublishAgainBody,
        errors=(409, 412),
    ),
    Route(
        "POST",
        "agents/{id}/versions/{number}/restore",
        restore_agent_version,
        "Restore a version",
        RestoredShape,
        scope="build",
        errors=(412,),
    ),
]
