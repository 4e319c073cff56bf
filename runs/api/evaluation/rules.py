"""Scoring rules in the API: which real runs are scored, and what came of it."""

from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal

from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from pydantic import Field

from runs.api.bodies import StrictBody
from runs.api.dispatch import json_response, no_content
from runs.api.etags import build_etag, check_if_match
from runs.api.evaluation.experiments import (
    EvaluatorScoreShape,
    evaluator_score_json,
)
from runs.api.evaluation.lookups import find_by_slug, find_evaluators
from runs.api.problems import form_problem, not_found
from runs.api.queries import Id, Page, PageQuery, paginate_by_id
from runs.api.route import Route
from runs.api.shapes import Shape
from runs.forms.rules.rule import ScoringRuleForm
from runs.models import Run, ScoredRun, ScoringRule
from runs.serializers import Json, format_timestamp
from runs.services.rules.figures import (
    load_rule_totals,
    load_scores_by_day,
    load_scores_by_version,
)
from runs.services.rules.manage_rule import (
    delete_scoring_rule,
    set_scoring_rule_enabled,
)
from runs.services.rules.score_runs import list_unavailable_evaluators

Slugs = Annotated[list[str], Field(min_length=1, max_length=50)]
Amount = Annotated[Decimal, Field(strict=False)]
BY_SLUG = ("agent", "queue", "dataset")
"""Fields of the form that a body has as slugs."""


class RuleFields(StrictBody):
    """What can be changed of a rule; what is left out stays."""

    percent: Amount = Decimal(100)
    """Part of the runs that is scored, above 0."""
    daily_budget: Amount | None = None
    """What scores may cost in a day (UTC); null for no limit."""
    daily_runs: int | None = None
    """Runs that are scored in a day (UTC), above 0; null for no limit."""
    queue: str | None = None
    """Slug of the annotation queue that failing runs are added to."""
    dataset: str | None = None
    """Slug of the dataset that gets the inputs of failing runs."""
    webhook: Id | None = None
    """Id of your webhook that is notified of failing runs."""


class NewRuleBody(RuleFields):
    """The body of `POST /api/v1/rules`."""

    name: Annotated[str, Field(min_length=1, max_length=120)]
    agent: str
    """Slug."""
    evaluators: Slugs
    """Slugs; their newest revisions are used."""


class RuleBody(RuleFields):
    """The body of `PATCH /api/v1/rules/{id}`."""

    name: Annotated[str, Field(min_length=1, max_length=120)] = ""
    agent: str = ""
    """Slug."""
    evaluators: Slugs = []
    """Slugs; their newest revisions are used."""


class RuleShape(Shape):
    """A rule that scores a sample of an agent's real runs."""

    id: int
    name: str
    owner: str
    agent: str
    evaluators: list[str]
    unavailable_evaluators: list[str]
    """Those that score nothing: archived, or no longer shared with the owner."""
    percent: float
    daily_budget: float | None
    daily_runs: int | None
    queue: str | None
    dataset: str | None
    webhook: int | None
    is_paused: bool
    problem: str
    """Why a failing run could not be sent on; empty after one that could."""
    created_at: str | None


class RuleTotalsShape(Shape):
    """The last 30 days of a rule."""

    runs: int
    passed: int
    failed: int
    cost: float
    waiting: int
    """Runs that have not been scored yet."""
    skipped: int
    """Runs over a limit of their day."""
    unscored: int
    """Runs that no evaluator was available for."""


class RuleDayShape(Shape):
    """A day of a rule."""

    day: date
    runs: int
    passed: int
    failed: int
    mean: float | None


class RuleVersionShape(Shape):
    """A version of the agent, in the last 30 days of a rule."""

    version: int | None
    """Null for the draft."""
    runs: int
    passed: int
    failed: int
    mean: float | None
    pass_rate_low: float
    """Of the 95% interval."""
    pass_rate_high: float


class RuleScoresShape(Shape):
    """What a rule has found in the last 30 days."""

    totals: RuleTotalsShape
    days: list[RuleDayShape]
    """The oldest first; days of UTC."""
    versions: list[RuleVersionShape]
    """The newest first."""


class ScoredRunShape(Shape):
    """A run that a rule has selected."""

    id: int
    run: int
    state: Literal["waiting", "done", "skipped", "unscored"]
    """`skipped`: over a limit of the day. `unscored`: no evaluator was available."""
    passed: bool | None
    value: float | None
    cost: float
    scored_at: str | None
    scores: list[EvaluatorScoreShape]


def rule_json(rule: ScoringRule) -> Json:
    budget = rule.daily_budget
    return {
        "id": rule.pk,
        "name": rule.name,
        "owner": rule.owner.get_username(),
        "agent": rule.agent.slug,
        "evaluators": sorted(one.slug for one in rule.evaluators.all()),
        "unavailable_evaluators": sorted(
            one.slug for one in list_unavailable_evaluators(rule)
        ),
        "percent": float(rule.percent),
        "daily_budget": None if budget is None else float(budget),
        "daily_runs": rule.daily_runs,
        "queue": rule.queue.slug if rule.queue else None,
        "dataset": rule.dataset.slug if rule.dataset else None,
        "webhook": rule.webhook_id,
        "is_paused": not rule.is_on,
        "problem": str(rule.problem),
        "created_at": format_timestamp(rule.created_at),
    }


def get_rule(user: User, pk: str) -> ScoringRule:
    found: ScoringRule | None = select_rules(user).filter(pk=int(pk)).first()
    if found is None:
        raise not_found("Rule", pk)
    return found


def select_rules(user: User) -> Any:
    rows = ScoringRule.objects.visible_to(user)
    related = ("owner", "agent", "queue", "dataset")
    return rows.select_related(*related).prefetch_related("evaluators")


def list_rules(request: HttpRequest, user: User, query: PageQuery) -> HttpResponse:
    """Your scoring rules, the newest first; administrators see all."""
    return json_response(paginate_by_id(select_rules(user), query, rule_json))


def read_rule(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """One scoring rule, with an ETag."""
    return respond_with_rule(get_rule(user, pk))


def respond_with_rule(rule: ScoringRule, status: int = 200) -> HttpResponse:
    headers = {"ETag": get_rule_etag(rule)}
    if status == 201:
        headers["Location"] = reverse("api-rule", args=[rule.pk])
    return json_response(rule_json(rule), status, **headers)


def get_rule_etag(rule: ScoringRule) -> str:
    """Return the ETag of its settings; scores and pauses do not alter it."""
    json = rule_json(rule)
    settings = [json[name] for name in ("name", "evaluators", *RuleFields.model_fields)]
    return build_etag(f"ScoringRule {rule.pk} {json['agent']} {settings!r}")


def create_rule(request: HttpRequest, user: User, body: NewRuleBody) -> HttpResponse:
    """Create a scoring rule; runs that end from now on are scored."""
    rule = save_rule(ScoringRule(owner=user), body)
    return respond_with_rule(get_rule(user, str(rule.pk)), 201)


def change_rule(
    request: HttpRequest, user: User, pk: str, body: RuleBody
) -> HttpResponse:
    """Change a scoring rule; scores that it has given stay."""
    get_rule(user, pk)
    with transaction.atomic():
        rule = ScoringRule.objects.select_for_update().filter(pk=int(pk)).first()
        if rule is None:
            raise not_found("Rule", pk)
        check_if_match(request, get_rule_etag(rule))
        save_rule(rule, body)
    return respond_with_rule(get_rule(user, pk))


def save_rule(rule: ScoringRule, body: NewRuleBody | RuleBody) -> ScoringRule:
    """Check the body as the form of the page does, and save it; raise a 422."""
    sent = body.model_dump(exclude_unset=True)
    choices: Any = ScoringRuleForm(instance=rule).fields
    names = ("name", "percent", "daily_budget", "daily_runs")
    given = {name: sent.get(name, getattr(rule, name)) for name in names}
    for name in BY_SLUG:
        given[name] = getattr(rule, f"{name}_id")
        if name in sent:
            slug = sent[name]
            rows = choices[name].queryset
            given[name] = None if slug is None else find_by_slug(rows, name, slug).pk
    given["webhook"] = sent.get("webhook", rule.webhook_id)
    if "evaluators" in sent:
        selected = rule.evaluators.all() if rule.pk else ()
        found = find_evaluators(rule.owner, sent["evaluators"], selected=selected)
        given["evaluators"] = [one.pk for one in found]
    else:
        given["evaluators"] = list(rule.evaluators.values_list("pk", flat=True))
    form = ScoringRuleForm(given, instance=rule)
    if not form.is_valid():
        raise form_problem(form)
    return form.save()


def pause_rule(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """Score nothing until it is resumed; runs that end meanwhile are left out."""
    set_scoring_rule_enabled(get_rule(user, pk), is_on=False)
    return respond_with_rule(get_rule(user, pk))


def resume_rule(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """Score runs again that end from now on."""
    set_scoring_rule_enabled(get_rule(user, pk), is_on=True)
    return respond_with_rule(get_rule(user, pk))


def delete_rule(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """Delete a rule with its scores; the runs stay."""
    delete_scoring_rule(get_rule(user, pk))
    return no_content()


def read_rule_scores(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """What a rule has found in the last 30 days, by day and by version."""
    rule = get_rule(user, pk)
    totals = load_rule_totals(rule)
    shape = {
        "totals": {
            name: getattr(totals, name) for name in RuleTotalsShape.model_fields
        },
        "days": [
            {name: getattr(one, name) for name in RuleDayShape.model_fields}
            for one in load_scores_by_day(rule.scored.all())
        ],
        "versions": [
            {
                "version": one.number,
                "runs": one.runs,
                "passed": one.passed,
                "failed": one.decided - one.passed,
                "mean": one.mean,
                "pass_rate_low": one.interval.low,
                "pass_rate_high": one.interval.high,
            }
            for one in load_scores_by_version(rule)
        ],
    }
    return json_response(shape)


def list_rule_runs(
    request: HttpRequest, user: User, pk: str, query: PageQuery
) -> HttpResponse:
    """The runs that a rule has selected, the latest first, with their scores."""
    visible = Run.objects.visible_to(user)
    rows = get_rule(user, pk).scored.filter(run__in=visible)
    rows = rows.prefetch_related("scores__revision__evaluator")
    return json_response(paginate_by_id(rows, query, scored_run_json))


def scored_run_json(row: ScoredRun) -> Json:
    return {
        "id": row.pk,
        "run": row.run_id,
        "state": row.state,
        "passed": row.passed,
        "value": row.value,
        "cost": float(row.cost),
        "scored_at": format_timestamp(row.scored_at),
        "scores": [evaluator_score_json(one) for one in row.scores.all()],
    }


ONE = "rules/{id}"
ROUTES = [
    Route(
        *("GET", "rules", list_rules, "List scoring rules"),
        Page[RuleShape],
        query=PageQuery,
    ),
    Route(
        *("POST", "rules", create_rule, "Create a scoring rule"),
        RuleShape,
        scope="build",
        body=NewRuleBody,
        status=201,
        is_idempotent=True,
        has_etag=True,
    ),
    Route("GET", ONE, read_rule, "Read a scoring rule", RuleShape, has_etag=True),
    Route(
        *("PATCH", ONE, change_rule, "Change a scoring rule"),
        RuleShape,
        scope="build",
        body=RuleBody,
        has_etag=True,
    ),
    Route(
        *("DELETE", ONE, delete_rule, "Delete a scoring rule"),
        scope="build",
        status=204,
    ),
    Route(
        *("POST", f"{ONE}/pause", pause_rule, "Pause a scoring rule"),
        RuleShape,
        scope="build",
    ),
    Route(
        *("POST", f"{ONE}/resume", resume_rule, "Resume a scoring rule"),
        RuleShape,
        scope="build",
    ),
    Route(
        *("GET", f"{ONE}/scores", read_rule_scores, "Read the scores of a rule"),
        RuleScoresShape,
    ),
    Route(
        *("GET", f"{ONE}/runs", list_rule_runs, "List runs that a rule has scored"),
        Page[ScoredRunShape],
        query=PageQuery,
    ),
]
