"""Annotation queues for tests: makers, and people who score."""

from typing import Any

from django.contrib.auth.models import User

from runs.models import AnnotationQueue, QueuedRun, Run
from runs.services.annotation.annotate import AnnotationContent, submit_annotation
from runs.services.annotation.claim import claim_next_run
from runs.services.annotation.queued_runs import add_runs_to_queue
from tests.make import make_agent, make_run, make_user


def make_queue(
    owner: User | None = None, *, runs: int = 0, **fields: Any
) -> AnnotationQueue:
    """Make a queue that everyone sees, with runs of its owner."""
    owner = owner or make_user()
    defaults = {
        "name": "Refund answers",
        "question": "How good is the answer?",
        "scale": ["harmful", "wrong", "partly", "good", "perfect"],
        "labels": ["Wrong fact", "Tone"],
        "visibility": "everyone",
    }
    queue = AnnotationQueue.objects.create(owner=owner, **{**defaults, **fields})
    if runs:
        agent = make_agent(owner)
        ended = [make_ended_run(agent, f"question {n}") for n in range(runs)]
        add_runs_to_queue(queue, ended, by=owner)
    return queue


def make_ended_run(agent, question: str = "Why?", **fields: Any) -> Run:
    defaults = {"status": "succeeded", "output": "Because.", "title": question}
    return make_run(agent=agent, inputs={"input": question}, **{**defaults, **fields})


def score_next(queue: AnnotationQueue, by: User, mark: int = 4, **said) -> QueuedRun:
    """Score the next run as `by`, and return it."""
    item = claim_next_run(queue, by=by)
    assert item is not None
    submit_annotation(item, AnnotationContent(mark, **said), by=by)
    return item
