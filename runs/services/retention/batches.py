"""Prune one batch of rows, in the caller's transaction."""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Max, Model, Q

from runs.models import Conversation, Run, RunSearchRow
from runs.models.runs import FINISHED_STATUSES
from runs.services.retention.preview import ROW_KINDS
from runs.services.retention.rules import (
    RetentionRules,
    RunGroup,
    list_run_groups,
    select_prunable_conversations,
    select_prunable_rows,
    select_prunable_runs,
)
from runs.services.runs.delete_rows import (
    delete_conversation_rows,
    delete_raw,
    delete_run_rows,
    lock_trees,
)
from runs.services.search.daily_stats import mark_pruned

MAX_RUNS = 20
MAX_STEPS = 100
"""Steps of the runs of a batch; a single run or conversation may have more."""
MAX_ROWS = 500
WINDOW = 2_000
"""Keys that one batch looks at, however few of them may go."""


class RetentionBatch(NamedTuple):
    """What a batch has done, and where the next one begins."""

    counts: dict[str, int]
    """Deleted rows by noun."""
    position: int = 0
    """The last key that was looked at."""
    is_last: bool = False
    """Whether its stage is done."""
    wait: float = 0.0
    """Seconds after which to continue, at least."""


Stage = Callable[[int], RetentionBatch]
"""Deletes the next batch after a position."""
OpenStage = Callable[[], Stage]
"""Begins a stage, or resumes it after a crash."""


def list_rule_stages(rules: RetentionRules, at: datetime) -> list[OpenStage]:
    """Return the stages of pruning by rules, always the same for one job."""
    groups = list(list_run_groups(rules, at))
    return [
        lambda: open_run_stage(groups),
        *(_open_conversation_stage_later(group) for group in groups),
        *(_open_row_stage_later(k, rules, at) for k in ROW_KINDS if k in rules.days),
    ]


def _open_conversation_stage_later(group: RunGroup) -> OpenStage:
    return lambda: open_conversation_stage(group)


def _open_row_stage_later(kind: str, rules: RetentionRules, at: datetime) -> OpenStage:
    def prune_rows(after: int) -> RetentionBatch:
        rows = select_prunable_rows(kind, rules, at)
        keys = list(rows.values_list("pk", flat=True)[:MAX_ROWS])
        deleted = delete_raw(rows.model._base_manager.filter(pk__in=keys))
        return RetentionBatch({kind: deleted}, is_last=len(keys) < MAX_ROWS)

    return lambda: prune_rows


def open_run_stage(groups: Sequence[RunGroup]) -> Stage:
    """Prune runs in the order of their keys."""
    cutoffs = [group.cutoff for group in groups]
    bound = find_first_key(Run, "created_at", max(cutoffs)) if cutoffs else 0
    rows = select_prunable_runs(groups)

    def prune_runs(after: int) -> RetentionBatch:
        window = _find_window_end(Run, after, bound)
        if window is None:
            return RetentionBatch({}, after, is_last=True)
        found = rows.filter(pk__gt=after, pk__lte=window).order_by("pk")
        sizes = found.values_list("pk", "next_index")[:MAX_RUNS]
        keys = _take_within_budget(list(sizes))
        is_whole = len(keys) == len(sizes) < MAX_RUNS
        locked = rows.filter(pk__in=keys).select_for_update(
            of=("self",), skip_locked=True
        )
        counts = prune_run_trees(list(locked.order_by("pk")))
        return RetentionBatch(counts, window if is_whole else keys[-1])

    return prune_runs


def open_conversation_stage(group: RunGroup) -> Stage:
    """Prune conversations with their branches and runs, in the order of their keys."""
    bound = find_first_key(Conversation, "created_at", group.cutoff)
    rows = select_prunable_conversations(group)

    def prune_conversations(after: int) -> RetentionBatch:
        window = _find_window_end(Conversation, after, bound)
        if window is None:
            return RetentionBatch({}, after, is_last=True)
        found = rows.filter(pk__gt=after, pk__lte=window).order_by("pk")
        keys = list(found.values_list("pk", flat=True)[:MAX_RUNS])
        counts = Counter[str]()
        for key in keys:
            counts.update(prune_conversation(group, key))
            if counts["runs"] >= MAX_RUNS:
                return RetentionBatch(dict(counts), key)
        return RetentionBatch(
            dict(counts), window if len(keys) < MAX_RUNS else keys[-1]
        )

    return prune_conversations


def prune_conversation(group: RunGroup, root: int) -> dict[str, int]:
    """Delete a conversation with its branches and runs, unless it is used again."""
    family = Q(pk=root) | Q(root=root)
    locked = Conversation.objects.select_for_update(of=("self",)).filter(family)
    keys = [row.pk for row in locked.order_by("pk")]
    if not select_prunable_conversations(group).filter(pk=root).exists():
        return {}
    runs = Run.objects.select_for_update(of=("self",)).filter(conversation__in=keys)
    counts = prune_run_trees(list(runs.order_by("pk")))
    if Run.objects.filter(conversation__in=keys).exists():
        return counts
    delete_conversation_rows([root])
    return {**counts, "conversations": 1}


def prune_run_trees(roots: Sequence[Run]) -> dict[str, int]:
    """Delete locked runs and all below them; a tree that still changes stays whole."""
    trees = lock_trees(roots)
    gone = [tree for tree in trees if all(is_settled(run) for run in tree)]
    family = [run.pk for tree in gone for run in tree]
    if not family:
        return {}
    mark_pruned(RunSearchRow.objects.filter(run__in=family).select_related("run"))
    delete_run_rows(family)
    children = len(family) - len(gone)
    return {"runs": len(gone), **({"sub_agent_runs": children} if children else {})}


def is_settled(run: Run) -> bool:
    """Whether nothing of the run is outstanding."""
    return run.status in FINISHED_STATUSES and run.indexed and not run.keep_forever


def find_first_key(model: type[Model], column: str, at: datetime) -> int:
    """Return the first key of a row of `at` or later, by bisection.

    Keys grow with time, and the time has no index: it would cost every new run.
    """
    rows: Any = model._base_manager.order_by("pk")
    low, high = 0, (rows.values_list("pk", flat=True).last() or 0) + 1
    while low < high:
        middle = (low + high) // 2
        row = rows.filter(pk__gte=middle, pk__lt=high).values_list("pk", column).first()
        if row is None or row[1] >= at:
            high = middle
        else:
            low = row[0] + 1
    return low


def _find_window_end(model: type[Model], after: int, bound: int) -> int | None:
    """Return the last of the next keys before `bound`; None if there is none."""
    rows: Any = model._base_manager.filter(pk__gt=after, pk__lt=bound)
    last: int | None = rows.order_by("pk")[:WINDOW].aggregate(last=Max("pk"))["last"]
    return last


def _take_within_budget(sizes: Sequence[tuple[int, int]]) -> list[int]:
    """Return the keys of the first runs, at least one, that have `MAX_STEPS` steps."""
    keys, steps = list[int](), 0
    for key, count in sizes:
        steps += count
        if keys and steps > MAX_STEPS:
            break
        keys.append(key)
    return keys
