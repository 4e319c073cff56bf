"""The gate of an agent in the API: set it, run it, and what it says of a draft."""

from typing import Annotated, Literal

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from pydantic import Field

from runs.api.bodies import StrictBody
from runs.api.definitions.agent_versions import get_version
from runs.api.definitions.agents import AGENTS
from runs.api.dispatch import json_response, no_content
from runs.api.etags import build_etag
from runs.api.evaluation.experiments import (
    ExperimentShape,
    Mode,
    experiment_json,
    report_refusals,
)
from runs.api.evaluation.lookups import find_dataset, find_evaluators
from runs.api.problems import field_problem, not_found
from runs.api.queries import Id, Query
from runs.api.route import Route
from runs.api.shapes import Shape
from runs.evaluation.gate import GateRules, RuleResult
from runs.models import Agent, Dataset, Gate
from runs.serializers import Json
from runs.services.experiments.create import MAX_REPETITIONS
from runs.services.gates.edit import GatePlan, find_tag_problem, remove_gate, save_gate
from runs.services.gates.run import start_gate_experiment
from runs.services.gates.state import GateState, get_gate, load_version_gate_state
from runs.views.gates.publish import load_draft_gate

Amount = Annotated[float, Field(le=1_000_000)]


class GateBody(StrictBody):
    """What a draft must reach before it is published."""

    dataset: str
    """Slug; its newest version counts."""
    evaluators: Annotated[list[str], Field(min_length=1, max_length=50)]
    """Slugs; their newest revisions count."""
    min_pass_rate: Annotated[float, Field(ge=0, le=1)] = 0.9
    refuses_regression: bool = True
    """Whether the draft must not be worse than the newest version."""
    must_pass_tag: Annotated[str, Field(max_length=40)] = ""
    """Each run of an example with this tag must pass; empty for none."""
    max_p95_seconds: Annotated[Amount, Field(gt=0)] | None = None
    max_cost_increase: Annotated[Amount, Field(ge=0)] | None = None
    """In percent of the cost per run of the newest version."""
    tool_mode: Mode = "hold_back"
    repetitions: Annotated[int, Field(ge=1, le=MAX_REPETITIONS)] = 1


class GateQuery(Query):
    """Of what the state is."""

    version: Id | None = None
    """Number of an older version; by default the draft."""


class RunGateBody(StrictBody):
    """What is compared with the newest version."""

    version: Annotated[int, Field(ge=1)] | None = None
    """Number of an older version; null for the draft."""


class GateShape(Shape):
    """What a draft must reach, and whether it has."""

    agent: str
    """Slug."""
    dataset: str
    """Slug."""
    evaluators: list[str]
    """Slugs."""
    min_pass_rate: float
    refuses_regression: bool
    must_pass_tag: str
    max_p95_seconds: float | None
    max_cost_increase: float | None
    tool_mode: Mode
    repetitions: int
    status: Literal["missing", "running", "stopped", "met", "not_met"]
    """Of the draft, or of the version in the query; `missing` if the gate has not been
    run since the last change."""
    experiment: int | None
    """That the status is of; null before one, and if an agent file brought the
    result."""
    results: list[RuleResult]
    """Each rule, if the status is `met` or `not_met`."""


def gate_settings_json(gate: Gate) -> Json:
    rules = GateRules.model_validate(gate.rules)
    return {
        "agent": gate.agent.slug,
        "dataset": gate.dataset.slug,
        "evaluators": sorted(gate.evaluators.values_list("slug", flat=True)),
        **rules.model_dump(mode="json"),
        "tool_mode": gate.tool_mode,
        "repetitions": gate.repetitions,
    }


def gate_json(gate: Gate, state: GateState) -> Json:
    results = state.result.rules if state.result else ()
    return {
        **gate_settings_json(gate),
        "status": state.status,
        "experiment": state.experiment.pk if state.experiment else None,
        "results": [one.model_dump(mode="json") for one in results],
    }


def require_gate(agent: Agent) -> Gate:
    """Return the gate; raise a 404."""
    gate = get_gate(agent)
    if gate is None:
        raise not_found("Gate of agent", agent.pk)
    return gate


def read_gate(
    request: HttpRequest, user: User, pk: str, query: GateQuery
) -> HttpResponse:
    """The gate, and what it says of the draft or of an older version."""
    agent = AGENTS.require_editable(user, pk)
    require_gate(agent)
    return respond_with_gate(agent, query.version)


def respond_with_gate(agent: Agent, version: int | None = None) -> HttpResponse:
    state = (
        load_draft_gate(agent)
        if version is None
        else load_version_gate_state(get_version(agent, version))
    )
    return json_response(
        gate_json(require_gate(agent), state), ETag=get_gate_etag(agent)
    )


def get_gate_etag(agent: Agent) -> str:
    """Return the ETag of what the gate requires; experiments do not alter it."""
    gate = get_gate(agent)
    return build_etag(f"Gate {agent.pk} {gate and gate_settings_json(gate)!r}")


def set_gate(request: HttpRequest, user: User, pk: str, body: GateBody) -> HttpResponse:
    """Create or replace the gate; drafts are judged by it from now on."""
    with AGENTS.edit(request, user, pk, etag_of=get_gate_etag) as agent:
        gate = get_gate(agent)
        rules = body.model_dump(include=set(GateRules.model_fields))
        plan = GatePlan(
            dataset=find_gate_dataset(user, gate, body.dataset),
            evaluators=find_evaluators(
                user, body.evaluators, selected=gate.evaluators.all() if gate else ()
            ),
            rules=GateRules.model_validate(
                {**rules, "must_pass_tag": body.must_pass_tag.strip()}
            ),
            tool_mode=body.tool_mode,
            repetitions=body.repetitions,
        )
        if problem := find_tag_problem(plan):
            raise field_problem("must_pass_tag", problem)
        save_gate(agent, plan, by=user)
    return respond_with_gate(agent)


def find_gate_dataset(user: User, gate: Gate | None, slug: str) -> Dataset:
    """Return the dataset; one that somebody else has selected can stay."""
    if gate is not None and gate.dataset.slug == slug:
        return gate.dataset
    dataset = find_dataset(user, slug)
    if not dataset.version:
        raise field_problem("dataset", f"Save a version of dataset {slug!r} first.")
    return dataset


def delete_gate(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """Let drafts be published without an experiment."""
    with AGENTS.edit(request, user, pk, etag_of=get_gate_etag) as agent:
        require_gate(agent)
        remove_gate(agent)
    return no_content()


def run_gate(
    request: HttpRequest, user: User, pk: str, body: RunGateBody
) -> HttpResponse:
    """Start the experiment that the gate requires."""
    agent = AGENTS.require_editable(user, pk)
    gate = require_gate(agent)
    if body.version is not None:
        get_version(agent, body.version)
    with report_refusals("id"):
        row = start_gate_experiment(gate, by=user, candidate=str(body.version or ""))
    location = reverse("api-experiment", args=[row.pk])
    return json_response(experiment_json(row), 201, Location=location)


ROUTES = [
    Route(
        "GET",
        "agents/{id}/gate",
        read_gate,
        "Read the gate of an agent",
        GateShape,
        query=GateQuery,
        has_etag=True,
    ),
    Route(
        "PUT",
        "agents/{id}/gate",
        set_gate,
        "Set the gate of an agent",
        GateShape,
        scope="build",
        body=GateBody,
        errors=(412,),
        has_etag=True,
    ),
    Route(
        "DELETE",
        "agents/{id}/gate",
        delete_gate,
        "Remove the gate of an agent",
        scope="build",
        status=204,
        errors=(412,),
        has_etag=True,
    ),
    Route(
        "POST",
        "agents/{id}/gate/run",
        run_gate,
        "Run the gate of an agent",
        ExperimentShape,
        body=RunGateBody,
        status=201,
        is_idempotent=True,
    ),
]
