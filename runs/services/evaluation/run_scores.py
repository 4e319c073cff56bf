"""All scores of a run: of evaluators, of people, and of the user of the chat."""

from datetime import datetime
from typing import Literal, NamedTuple

from django.contrib.auth.models import User
from django.db.models import F, Q, QuerySet

from runs.models import Annotation, EvaluatorRevision, Run, RunScore, Score

ScoreSource = Literal["evaluator", "person", "chat_user"]


class RunScoreEntry(NamedTuple):
    """One score, and who or what gave it."""

    source: ScoreSource
    name: str
    """Of the evaluator or the person."""
    value: float | None
    passed: bool | None
    label: str = ""
    explanation: str = ""
    problem: str = ""
    """Why there is no score; empty if there is one."""
    at: datetime | None = None
    """Null for ratings, whose time is not stored."""
    revision: EvaluatorRevision | None = None


def load_run_scores(run: Run, *, viewer: User) -> list[RunScoreEntry]:
    """Return the scores of a visible run: evaluators first, ratings last."""
    return [
        *load_evaluator_scores(run),
        *load_annotations(run, viewer=viewer),
        *build_rating_score(run),
    ]


def load_evaluator_scores(run: Run) -> list[RunScoreEntry]:
    """Return what evaluators of experiments and rules say."""
    names = ("revision__evaluator",)
    of_experiments = Score.objects.filter(cell__run=run).select_related(*names)
    of_rules = RunScore.objects.filter(scored__run=run).select_related(*names, "scored")
    rows: list[tuple[Score | RunScore, datetime | None]] = [
        *((one, one.at) for one in of_experiments),
        *((one, one.scored.scored_at) for one in of_rules),
    ]
    return [
        RunScoreEntry(
            "evaluator",
            one.revision.evaluator.name,
            one.value,
            one.passed,
            one.label,
            one.explanation,
            one.problem,
            at,
            one.revision,
        )
        for one, at in rows
    ]


def load_annotations(run: Run, *, viewer: User) -> list[RunScoreEntry]:
    """Return the marks of people, from 0 to 1.

    Those of a queue that still asks the viewer for a mark are left out.
    """
    rows = filter_shown_annotations(viewer).filter(item__run=run)
    return [
        RunScoreEntry(
            "person",
            one.by.get_username(),
            compute_mark_value(one.mark or 1, len(one.item.queue.scale)),
            (one.mark or 1) >= one.item.queue.passing_mark,
            ", ".join(one.labels),
            one.comment,
            at=one.changed_at,
        )
        for one in rows.select_related("by", "item__queue")
    ]


def filter_shown_annotations(viewer: User) -> QuerySet[Annotation]:
    """Return the marks, without those of runs that the viewer may still mark."""
    done = Annotation.objects.filter(state=Annotation.State.DONE)
    mine = done.filter(by=viewer)
    is_over = Q(item__done_count__gte=F("item__queue__people_per_run"))
    return done.filter(is_over | Q(item__in=mine.values("item")))


def compute_mark_value(mark: int, marks: int) -> float:
    """Return a mark of a scale, from 1 on, as a value from 0 to 1."""
    return (mark - 1) / (marks - 1) if marks > 1 else 1.0


def build_rating_score(run: Run) -> list[RunScoreEntry]:
    """Return the rating by the owner: in a chat, that of its user."""
    if run.rating is None:
        return []
    is_chat = run.conversation_id is not None and not run.is_test
    is_good = run.rating == Run.RATINGS["good"]
    return [
        RunScoreEntry(
            "chat_user" if is_chat else "person",
            run.owner.get_username(),
            float(is_good),
            is_good,
        )
    ]
