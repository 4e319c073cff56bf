"""Save an evaluator; each change of its settings is a revision."""

from django.contrib.auth.models import User
from django.db import transaction

from runs.evaluation.registry import ConfigProblem, validate_evaluator_config
from runs.models import Evaluator, EvaluatorRevision
from runs.services.agents.manage import duplicate_definition
from runs.services.evaluation.judge_requests import find_judge_problem


def find_evaluator_problems(evaluator: Evaluator) -> list[ConfigProblem]:
    """Return what is wrong with its settings, and a provider that it cannot ask."""
    problems = validate_evaluator_config(evaluator.kind, evaluator.config)
    if problems:
        return problems
    missing = find_judge_problem(evaluator, owner=evaluator.owner)
    return [ConfigProblem("provider", missing)] if missing else []


def save_evaluator(evaluator: Evaluator, *, by: User) -> Evaluator:
    """Store a new or edited evaluator; scores keep the revision they were given by."""
    with transaction.atomic():
        if evaluator.pk:
            Evaluator.objects.select_for_update().get(pk=evaluator.pk)
        newest = get_newest_revision(evaluator) if evaluator.pk else None
        settings = (evaluator.kind, evaluator.config)
        if newest is not None and (newest.kind, newest.config) == settings:
            evaluator.save()
            return evaluator
        evaluator.revision = 1 if newest is None else newest.number + 1
        evaluator.save()
        EvaluatorRevision.objects.create(
            evaluator=evaluator,
            number=evaluator.revision,
            kind=evaluator.kind,
            config=evaluator.config,
            by=by,
        )
    return evaluator


def get_newest_revision(evaluator: Evaluator) -> EvaluatorRevision | None:
    return evaluator.revisions.order_by("-number").first()


@transaction.atomic
def duplicate_evaluator(original: Evaluator, *, by: User) -> Evaluator:
    """Return a private copy that belongs to `by`, at its first revision."""
    copy = duplicate_definition(original, by=by)
    copy.revision = 0
    return save_evaluator(copy, by=by)
