"""A run among its forks: the tree they make, as one may see it."""

from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser, User

from runs.models import Run

MOST_LEVELS = 50
MOST_RUNS = 100

EDIT_WORDS = {
    "inputs": "other inputs",
    "prompt": "other prompt",
    "model": "other model",
    "tools": "other tools",
    "limits": "other limits",
    "reply": "edited reply",
    "observation": "edited result",
    "call": "called again",
}


@dataclass(frozen=True)
class Relative:
    """One run of the tree."""

    run: Run
    depth: int
    is_here: bool

    @property
    def words(self) -> str:
        """Where it parts from its parent, and how."""
        return words_of_fork(self.run)

    @property
    def place(self) -> int:
        """How far it is set in; deep trees stop somewhere."""
        return min(self.depth, 8)


@dataclass(frozen=True)
class Family:
    """All relatives of a run in the order of the tree; alone there are none."""

    relatives: tuple[Relative, ...] = ()
    parent: Run | None = None
    """The run it was forked from, if one may see it."""

    @property
    def forks(self) -> int:
        """How many forks the whole tree has."""
        return len(self.relatives) - 1


def words_of_fork(run: Run) -> str:
    """Say at which step a run parts from its parent, and what was changed there."""
    if run.fork_index is None:
        return "first run"
    edits = [EDIT_WORDS.get(word, word) for word in run.fork_edits]
    return ", ".join([f"fork at step {run.fork_row}", *edits])


def family_of(run: Run, user: User | AnonymousUser) -> Family:
    """Return the tree of forks that `run` is part of, without what `user` may not see.

    A deleted or hidden run cuts the tree: its forks begin trees of their own.
    """
    visible = Run.objects.visible_to(user).only(
        "pk",
        "status",
        "title",
        "forked_from_id",
        "fork_row",
        "fork_index",
        "fork_edits",
        "created_at",
    )
    root, parent = run, None
    for _ in range(MOST_LEVELS):
        above = visible.filter(pk=root.forked_from_id or 0).first()
        if above is None:
            break
        parent = parent or above
        root = above
    level, children, count = [root.pk], dict[int, list[Run]](), 1
    for _ in range(MOST_LEVELS):
        below = list(visible.filter(forked_from__in=level).order_by("pk")[:MOST_RUNS])
        if not below or count >= MOST_RUNS:
            break
        for one in below:
            children.setdefault(one.forked_from_id or 0, []).append(one)
        level, count = [one.pk for one in below], count + len(below)
    if not children:
        return Family()
    return Family(tuple(walked(root, children, run)), parent)


def walked(root: Run, children: dict[int, list[Run]], here: Run) -> list[Relative]:
    """Return the tree from the top down, each run before its forks."""
    found, waiting = [], [(root, 0)]
    while waiting:
        run, depth = waiting.pop()
        found.append(Relative(run, depth, run.pk == here.pk))
        below = children.get(run.pk, [])
        waiting += [(one, depth + 1) for one in reversed(below)]
    return found
