"""The tree of forks that a run is part of."""

from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser, User
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.models import Run

MAX_LEVELS = 50
MAX_TREE_RUNS = 100

EDIT_LABELS = {
    "inputs": gettext_lazy("other inputs"),
    "prompt": gettext_lazy("other prompt"),
    "model": gettext_lazy("other model"),
    "tools": gettext_lazy("other tools"),
    "limits": gettext_lazy("other limits"),
    "reply": gettext_lazy("edited reply"),
    "observation": gettext_lazy("edited result"),
    "call": gettext_lazy("tool called again"),
}


@dataclass(frozen=True)
class ForkNode:
    run: Run
    depth: int
    is_here: bool

    @property
    def words(self) -> str:
        """Where it branches off, and what was changed."""
        return describe_fork(self.run)

    @property
    def indent(self) -> int:
        """Levels of indentation, at most eight."""
        return min(self.depth, 8)


@dataclass(frozen=True)
class ForkTree:
    """All runs of the tree in order; empty for a run without forks."""

    nodes: tuple[ForkNode, ...] = ()
    parent: Run | None = None
    """The run it was forked from, if visible."""

    edits: tuple[str, ...] = ()
    """What was changed in this run when it was forked."""

    @property
    def forks(self) -> int:
        return len(self.nodes) - 1


def describe_fork(run: Run) -> str:
    """Return at which step a run was forked, and what was changed there."""
    if run.fork_index is None:
        return _("original run")
    fork = _("fork at step %(number)s") % {"number": run.fork_row}
    return ", ".join([fork, *list_fork_edits(run)])


def list_fork_edits(run: Run) -> list[str]:
    """Return what was changed when a run was forked; nothing if it was not edited."""
    return [str(EDIT_LABELS.get(word, word)) for word in run.fork_edits]


def build_fork_tree(run: Run, user: User | AnonymousUser) -> ForkTree:
    """Return the tree of forks that `run` is part of, as far as `user` may see it.

    A deleted or hidden run cuts the tree: its forks are roots of their own trees.
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
    for _level in range(MAX_LEVELS):
        above = visible.filter(pk=root.forked_from_id or 0).first()
        if above is None:
            break
        parent = parent or above
        root = above
    level, children, count = [root.pk], dict[int, list[Run]](), 1
    for _level in range(MAX_LEVELS):
        below = list(
            visible.filter(forked_from__in=level).order_by("pk")[:MAX_TREE_RUNS]
        )
        if not below or count >= MAX_TREE_RUNS:
            break
        for one in below:
            children.setdefault(one.forked_from_id or 0, []).append(one)
        level, count = [one.pk for one in below], count + len(below)
    if not children:
        return ForkTree()
    nodes = tuple(flatten_fork_tree(root, children, run))
    return ForkTree(nodes, parent, tuple(list_fork_edits(run)))


def flatten_fork_tree(
    root: Run, children: dict[int, list[Run]], here: Run
) -> list[ForkNode]:
    """Return the nodes of the tree, each run before its forks."""
    found, waiting = [], [(root, 0)]
    while waiting:
        run, depth = waiting.pop()
        found.append(ForkNode(run, depth, run.pk == here.pk))
        below = children.get(run.pk, [])
        waiting += [(one, depth + 1) for one in reversed(below)]
    return found
