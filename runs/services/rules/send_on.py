"""Send a failing run on: to an annotation queue, a dataset, a webhook.

All of it is part of the transaction that stores the scores.
"""

from collections.abc import Sequence

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.functions import Now

from runs.models import (
    AnnotationQueue,
    Dataset,
    Delivery,
    Example,
    Run,
    ScoringRule,
    Webhook,
)
from runs.models.webhooks import SCORE_EVENT
from runs.services.annotation.queued_runs import add_runs_to_queue
from runs.services.datasets.edit import add_examples
from runs.services.datasets.from_run import build_question
from runs.services.datasets.same_example import find_same_example
from runs.services.errors import RunsError
from runs.store.outbox import FACTS
from runs.wakeup import enqueue_delivery

FIRST_SCORE_SEQ = 10**12
"""Above every `Run.seq`, so that each rule reports a run once to a webhook."""


def send_failing_run(rule: ScoringRule, run: Run, failures: Sequence[str]) -> None:
    """Send a run to where the rule wants it; the owner must still be allowed to."""
    problem = ""
    queues = AnnotationQueue.objects.usable_by(rule.owner)
    if rule.queue_id is not None and (queue := queues.filter(pk=rule.queue_id).first()):
        add_runs_to_queue(queue, [run], by=None, reason=rule.name)
    datasets = Dataset.objects.editable_by(rule.owner).filter(archived_at=None)
    if rule.dataset_id is not None and (
        dataset := datasets.filter(pk=rule.dataset_id).first()
    ):
        problem = add_failing_example(dataset, run, by=rule.owner)
    report_failing_run(rule, run, failures)
    ScoringRule.objects.filter(pk=rule.pk).exclude(problem=problem).update(
        problem=problem
    )


def add_failing_example(dataset: Dataset, run: Run, *, by: User) -> str:
    """Add the inputs of a run to the dataset, without its answer; return a problem.

    What it answered is not what was expected. Known questions are left as they are.
    """
    content = build_question(run)
    if find_same_example(dataset, content, run) is not None:
        return ""
    try:
        with transaction.atomic():
            add_examples(
                dataset, [content], by=by, source=Example.Source.RUN, runs=[run]
            )
    except RunsError as refused:
        return str(refused)
    return ""


def report_failing_run(rule: ScoringRule, run: Run, failures: Sequence[str]) -> None:
    """Write the delivery of the event; a paused webhook gets none."""
    webhooks = Webhook.objects.filter(owner=rule.owner, is_on=True)
    if rule.webhook_id is None:
        return
    webhook = webhooks.select_for_update().filter(pk=rule.webhook_id).first()
    if webhook is None:
        return
    facts = {name: getattr(run, name) for name in FACTS} | {
        "cost": float(run.cost),
        "status": run.status,
        "rule": rule.name,
        "failed": list(failures),
    }
    delivery, is_new = Delivery.objects.get_or_create(
        webhook=webhook,
        run=run,
        seq=FIRST_SCORE_SEQ + rule.pk,
        defaults={
            "event": SCORE_EVENT,
            "facts": facts,
            "available_at": Now(),
            "enqueued_at": Now(),
            "created_at": Now(),
        },
    )
    if is_new:
        enqueue_delivery(delivery.pk)
