"""Scoring rules for tests: makers, and the turn of a worker."""

from typing import Any

from django.utils import timezone

from runs.models import Agent, Evaluator, Run, ScoringRule
from runs.services.rules.score_runs import advance_scoring_rule, claim_scoring_rule
from runs.services.search.index_runs import index_runs
from tests.makers.annotation import make_ended_run
from tests.makers.experiments import make_revision


def make_rule(agent: Agent, **fields: Any) -> ScoringRule:
    """Make a rule of the agent's owner that wants the word "yes" in each answer."""
    owner = fields.pop("owner", agent.owner)
    evaluators = fields.pop("evaluators", None) or [make_yes_evaluator(owner)]
    rule = ScoringRule.objects.create(
        owner=owner, agent=agent, **{"name": "Says yes", **fields}
    )
    rule.evaluators.set(evaluators)
    return rule


def make_yes_evaluator(owner) -> Evaluator:
    return make_revision(owner, config={"texts": ["yes"]}).evaluator


def end_run(agent: Agent, output: str = "yes", **fields: Any) -> Run:
    """Make a run that has just ended, and index it as a worker does."""
    now = timezone.now()
    run = make_ended_run(agent, output=output, **{"ended_at": now, **fields})
    index_runs()
    return run


def score_all() -> int:
    """Do turns of a worker until nothing is left; return how many runs it scored."""
    count = 0
    while (rule := claim_scoring_rule()) is not None:
        count += advance_scoring_rule(rule)
    return count
