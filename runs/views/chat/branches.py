"""The branches of a conversation at a message: other questions, and other answers."""

import json
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from django.db.models import Min

from runs.models import Conversation, Run
from runs.services.conversations.messages import find_turn_positions


class BranchLink(NamedTuple):
    """A branch, and its run at the message."""

    conversation_id: int
    run_pk: int


class BranchNav(NamedTuple):
    """The way from one version to the one before and the one after it."""

    number: int
    total: int
    previous: BranchLink | None
    next: BranchLink | None


class TurnBranches(NamedTuple):
    """The versions of a message, and of its answer; None if there is one only."""

    question: BranchNav | None = None
    answer: BranchNav | None = None


def load_turn_branches(
    conversation: Conversation, runs: Sequence[Run]
) -> dict[int, TurnBranches]:
    """Return the branches at each run, with as many queries as for one."""
    places = find_turn_positions(conversation, runs)
    found = Conversation.objects.filter(
        branch_at__in={place.run_pk for place in places.values()},
        owner=conversation.owner,
    )
    at_place = dict(found.values_list("pk", "branch_at"))
    if not at_place:
        return {run.pk: TurnBranches() for run in runs}
    firsts = Run.objects.filter(conversation__in=at_place).values("conversation")
    first_pks = firsts.annotate(first=Min("pk")).values_list("first", flat=True)
    versions: dict[int, list[tuple[BranchLink, str]]] = defaultdict(list)
    rows = Run.objects.filter(pk__in={*first_pks, *at_place.values()}).order_by("pk")
    for pk, home, inputs in rows.values_list("pk", "conversation_id", "inputs"):
        key = at_place.get(home) if pk not in at_place.values() else pk
        if home is not None and key is not None:
            versions[key].append((BranchLink(home, pk), dump_inputs(inputs)))
    return {
        run.pk: build_turn_branches(run, versions.get(places[run.pk].run_pk, []))
        for run in runs
    }


def build_turn_branches(
    run: Run, versions: list[tuple[BranchLink, str]]
) -> TurnBranches:
    """Sort the versions of a message: the same inputs make other answers."""
    by_inputs: dict[str, list[BranchLink]] = defaultdict(list)
    for link, inputs in versions:
        by_inputs[inputs].append(link)
    mine = by_inputs.get(dump_inputs(run.inputs), [])
    newest = [links[-1] for links in by_inputs.values()]
    return TurnBranches(
        question=build_branch_nav(newest, mine[-1] if mine else None),
        answer=build_branch_nav(mine, BranchLink(run.conversation_id or 0, run.pk)),
    )


def build_branch_nav(
    links: list[BranchLink], current: BranchLink | None
) -> BranchNav | None:
    """Return the way among `links`; None if there is no choice."""
    if len(links) < 2 or current not in links:
        return None
    at = links.index(current)
    return BranchNav(
        number=at + 1,
        total=len(links),
        previous=links[at - 1] if at else None,
        next=links[at + 1] if at + 1 < len(links) else None,
    )


def dump_inputs(inputs: object) -> str:
    return json.dumps(inputs, sort_keys=True)
