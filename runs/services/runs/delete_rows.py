"""Delete ended runs with everything that belongs to them, without loading the rows.

Django's own cascade loads every row and takes several times as long. A test compares
`OWN_ROWS` and `REFERENCES` with the tables.
"""

from collections.abc import Collection, Sequence
from typing import Any

from django.db.models import Exists, Model, OuterRef, QuerySet

from runs.models import (
    AgentStep,
    AgentVersion,
    Allowance,
    Annotation,
    ApprovalLink,
    Conversation,
    Decision,
    Delivery,
    Example,
    ExperimentCandidate,
    ExperimentRun,
    HookRequest,
    IdempotencyKey,
    ImportedSpan,
    ImportedTrace,
    JudgeRequest,
    ModelAttempt,
    ModelCall,
    Notification,
    ProviderOutage,
    QueuedRun,
    ReplayedInput,
    Resume,
    Run,
    RunComment,
    RunScore,
    RunSearchRow,
    RunShare,
    RunTag,
    RunTool,
    Schedule,
    ScoredRun,
    Spec,
    StepMedia,
)

OWN_ROWS: Sequence[tuple[type[Model], str]] = (
    (StepMedia, "step__run"),
    (Notification, "run"),
    (ApprovalLink, "decision__step__run"),
    (Decision, "step__run"),
    (AgentStep, "run"),
    (ModelCall, "run"),
    (ModelAttempt, "run"),
    (Allowance, "run"),
    (Resume, "run"),
    (IdempotencyKey, "run"),
    (RunShare, "run"),
    (RunSearchRow, "run"),
    (RunTool, "run"),
    (RunTag, "run"),
    (RunComment, "run"),
    (JudgeRequest, "run"),
    (JudgeRequest, "baseline_run"),
    (Annotation, "item__run"),
    (QueuedRun, "run"),
    (RunScore, "scored__run"),
    (ScoredRun, "run"),
    (Delivery, "run"),
    (ImportedSpan, "trace__run"),
    (ImportedTrace, "run"),
)
"""Tables whose rows go with a run, and the way from them to it; referring ones first.

Sub-agent runs, which refer to a step, are among the runs that are deleted.
"""
REFERENCES: Sequence[tuple[type[Model], str]] = (
    (Run, "forked_from"),
    (Schedule, "last_run"),
    (ProviderOutage, "probe_run"),
    (Example, "source_run"),
    (ExperimentRun, "run"),
    (ReplayedInput, "recorded"),
    (ReplayedInput, "run"),
    (HookRequest, "run"),
)
"""Columns that are emptied. Those of copied rows are in `_empty_fork_references`."""


def list_relations(model: type[Model]) -> list[Any]:
    """Return the foreign keys to a table, those without a reverse name too."""
    fields = model._meta.get_fields(include_hidden=True)
    return [field for field in fields if field.auto_created and not field.concrete]


def lock_runs(**which: Any) -> list[Run]:
    """Return the runs, locked in the order that all writers use."""
    rows = Run.objects.select_for_update(of=("self",)).filter(**which)
    return list(rows.order_by("pk"))


def lock_trees(roots: Sequence[Run]) -> list[list[Run]]:
    """Return for each locked run a list of it and all sub-agent runs below, locked."""
    trees = {root.pk: [root] for root in roots}
    level = dict(trees)
    while level:
        children = lock_runs(parent_step__run__in=level)
        above: dict[int | None, int] = dict(
            AgentStep.objects.filter(child__in=children).values_list("pk", "run")
        )
        below = {}
        for child in children:
            tree = level[above[child.parent_step_id]]
            tree.append(child)
            below[child.pk] = tree
        level = below
    return list(trees.values())


def delete_run_rows(run_ids: Collection[int]) -> None:
    """Delete whole trees of locked runs, and specs that only they used."""
    ids = list(run_ids)
    specs = set(Run.objects.filter(pk__in=ids).values_list("spec", flat=True))
    specs |= set(
        ModelCall.objects.filter(run__in=ids, spec__isnull=False)
        .values_list("spec", flat=True)
        .distinct()
    )
    _empty_fork_references(ids)
    _note_deleted_sources(ids)
    for model, column in REFERENCES:
        rows: QuerySet[Any] = model._base_manager.filter(**{f"{column}__in": ids})
        rows.update(**{column: None})
    for model, path in OWN_ROWS:
        delete_raw(model._base_manager.filter(**{f"{path}__in": ids}))
    delete_raw(Run._base_manager.filter(pk__in=ids))
    delete_unused_specs(specs)


def delete_raw(rows: QuerySet[Any]) -> int:
    """Delete rows by one statement, without signals and without referring rows."""
    return rows._raw_delete(rows.db) or 0


def delete_unused_specs(spec_ids: Collection[int]) -> None:
    used = OuterRef("pk")
    unused = Spec.objects.filter(
        ~Exists(Run.objects.filter(spec=used)),
        ~Exists(AgentVersion.objects.filter(spec=used)),
        ~Exists(ModelCall.objects.filter(spec=used)),
        ~Exists(ExperimentCandidate.objects.filter(spec=used)),
        pk__in=list(spec_ids),
    )
    delete_raw(unused)


def delete_conversation_rows(roots: Collection[int]) -> int:
    """Delete conversations without runs and their branches; return how many."""
    deleted = delete_raw(Conversation._base_manager.filter(root__in=list(roots)))
    return deleted + delete_raw(Conversation._base_manager.filter(pk__in=list(roots)))


def _note_deleted_sources(run_ids: Sequence[int]) -> None:
    """Let examples know what they were created from, when it is gone."""
    examples = Example.objects.filter(source_run__in=run_ids)
    runs = Run.objects.filter(pk__in=examples.values("source_run"))
    for run in runs.only("turn_ids", "given_turns"):
        kind = "CONVERSATION" if run.has_earlier_messages else "RUN"
        examples.filter(source_run=run).update(source=Example.Source[kind])


def _empty_fork_references(run_ids: Sequence[int]) -> None:
    """Let copies in forks forget their originals; they have all they need."""
    forks = Run.objects.filter(forked_from__in=run_ids).values_list("pk", flat=True)
    fork_ids = list(forks)
    if fork_ids:
        for model in (AgentStep, ModelCall):
            copies: QuerySet[Any] = model._base_manager.filter(run__in=fork_ids)
            copies.exclude(copied_from=None).update(copied_from=None)
