"""Automatic titles of conversations: no model is asked for one.

A conversation begins with the first line of its first question. When the first answer
begins with a heading, as reports and plans do, that is what the conversation is about,
and replaces it. A title that a person has given is never changed.
"""

import re
from collections.abc import Iterable

from django.db.models import Min, Q

from runs.models import Conversation, Run

ANSWER_HEADING = re.compile(r"\s*#{1,3}[ \t]+([^\n]+)")
MARKUP = re.compile(r"[*_`#]+|\[([^\]]*)\]\([^)]*\)")
MAX_HEADING_LENGTH = 80
"""Characters; a longer heading is no title."""


def update_automatic_titles(runs: Iterable[Run]) -> None:
    """Title the conversations that ended runs began by the headings of the answers."""
    found = {
        run.conversation_id: (run, heading)
        for run in runs
        if run.conversation_id is not None and (heading := find_answer_heading(run))
    }
    if not found:
        return
    rows = Run.objects.filter(conversation__in=found).values("conversation")
    firsts = rows.annotate(first=Min("pk")).values_list("conversation", "first")
    for pk, first in firsts.order_by():
        run, heading = found[pk]
        if run.pk == first:
            family = Q(pk=pk, root=None) | Q(root=pk)
            same = Conversation.objects.filter(family, title=run.title, is_test=False)
            same.update(title=heading)


def find_answer_heading(run: Run) -> str:
    """Return the heading with which the answer begins, without marks; empty if none."""
    if run.status != Run.Status.SUCCEEDED or not isinstance(run.output, str):
        return ""
    match = ANSWER_HEADING.match(run.output[:1_000])
    heading = MARKUP.sub(r"\1", match[1]).strip() if match else ""
    return heading if len(heading) <= MAX_HEADING_LENGTH else ""
