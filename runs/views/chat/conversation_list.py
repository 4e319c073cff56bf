"""The list of a user's conversations: groups by age, search, and the archive."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from runs.htmx import HtmxRequest
from runs.models import Agent, Conversation, Run
from runs.models.runs import UNFINISHED_STATUSES
from runs.store.history import extract_question
from runs.ui.format import number
from runs.ui.highlight import find_excerpt
from runs.ui.list_search import get_search_text
from runs.whole_number import parse_whole_number

MAX_CONVERSATIONS = 50
"""Conversations in the list."""
MAX_BRANCHES = 250
"""Newest branches among which the conversations of the list are found."""
MAX_FOUND_RUNS = 200
"""Newest matching messages among which the found conversations are."""
MAX_AGENTS = 30
"""Agents in the menu of a conversation; the page of the chat lists all."""

AGE_GROUPS = [
    (timedelta(days=1), gettext_lazy("Last 24 hours")),
    (timedelta(days=7), gettext_lazy("Last 7 days")),
    (timedelta(days=30), gettext_lazy("Last 30 days")),
]
"""By age and not by date: the server does not know where midnight is for the viewer."""


class ConversationRow(NamedTuple):
    conversation: Conversation
    status: str
    last: str
    """The newest question."""
    excerpt: str = ""
    """Where a message matches the search."""
    run_pk: int | None = None
    """The message that matches the search."""

    @property
    def is_unfinished(self) -> bool:
        return self.status in UNFINISHED_STATUSES

    @property
    def url(self) -> str:
        """The page of the conversation, at the message that was found."""
        at = (self.conversation.agent.slug, self.conversation.pk)
        page = reverse("chat-conversation", args=at)
        if self.run_pk is None:
            return page
        return f"{page}?at={self.run_pk}#chat-turn-{self.run_pk}"


class ConversationPage(NamedTuple):
    """A part of the list."""

    rows: list[ConversationRow]
    earlier: int | None = None
    """The newest run of its last row, if there are earlier conversations."""


class ConversationGroup(NamedTuple):
    """Conversations under a heading."""

    heading: str
    rows: list[ConversationRow]


def build_list_context(
    request: HtmxRequest, *, agent: Agent | None, conversation: Conversation | None
) -> dict[str, Any]:
    """Return what the list beside `conversation` shows, as the query says.

    `agent` is that of the page, if it has one.
    """
    text, is_archive = get_search_text(request), "archived" in request.GET
    before = None if text else parse_whole_number(request.GET.get("earlier", ""))
    own = query_own_conversations(request.user, archived=is_archive)
    if text:
        part = ConversationPage(find_conversations(request.user, own, text))
    else:
        part = build_conversation_page(own, before=before)
    agents = query_chat_agents(request.user)
    page = get_chat_url(agent, conversation)
    asked = {"q": text} if text else {}
    asked |= {"archived": "1"} if is_archive else {}
    earlier_url = build_list_url(page, asked, part.earlier) if part.earlier else ""
    return {
        "groups": list(group_found(part.rows) if text else group_by_age(part.rows)),
        "has_unfinished": any(row.is_unfinished for row in part.rows),
        "search": text,
        "is_archive": is_archive,
        "actions": ["unarchive" if is_archive else "archive"],
        "list_url": build_list_url(page, asked, before),
        "newest_url": build_list_url(page, asked),
        "earlier_url": earlier_url,
        "row_query": build_list_url("", asked, before) if before else "",
        "page_url": page,
        "menu_agents": agents.order_by("name")[:MAX_AGENTS],
        "new_url": get_new_url(agent),
        "root_pk": conversation.root_pk if conversation else None,
    }


def build_list_url(page: str, asked: dict[str, str], before: int | None = None) -> str:
    query = asked | ({"earlier": str(before)} if before else {})
    return f"{page}?{urlencode(query)}" if query else page


def query_chat_agents(user: User) -> QuerySet[Agent]:
    return Agent.objects.usable_by(user).filter(archived_at=None)


def get_chat_url(agent: Agent | None, conversation: Conversation | None) -> str:
    """Return the page of a conversation, of a new one, or of the chat."""
    if agent is None:
        return reverse("chat")
    if conversation is None:
        return reverse("chat-agent", args=[agent.slug])
    return reverse("chat-conversation", args=[agent.slug, conversation.pk])


def get_new_url(agent: Agent | None) -> str:
    """Return the page of a new conversation, with the same agent if it still runs."""
    if agent is None or agent.archived_at is not None:
        return f"{reverse('chat')}?new=1"
    return reverse("chat-agent", args=[agent.slug])


def query_own_conversations(
    user: User, *, archived: bool = False
) -> QuerySet[Conversation]:
    """Return the user's conversations with what lists show, newest first.

    Those with agents that the user may no longer see are left out: their pages are 404.
    """
    newest = Run.objects.filter(conversation=OuterRef("pk")).order_by("-pk")
    agents = Agent.objects.visible_to(user).filter(is_playground=False)
    return (
        Conversation.objects.filter(owner=user, is_test=False, agent__in=agents)
        .filter(archived_at__isnull=not archived)
        .select_related("agent")
        .annotate(
            status=Subquery(newest.values("status")[:1]),
            last=Subquery(newest.values("title")[:1]),
            last_pk=Subquery(newest.values("pk")[:1]),
            last_at=Subquery(newest.values("created_at")[:1]),
        )
        .filter(last_pk__isnull=False)
        .order_by("-last_pk")
    )


def build_conversation_page(
    conversations: QuerySet[Conversation], *, before: int | None
) -> ConversationPage:
    """Return the newest conversations as rows, each with its newest branch.

    With `before`, those whose newest run is older than that one.
    """
    if before is not None:
        rooted: Any = conversations.annotate(root_key=Coalesce("root", "pk"))
        newer = rooted.filter(last_pk__gte=before).values("root_key")
        conversations = rooted.exclude(root_key__in=newer)
    found: list[Any] = list(conversations[:MAX_BRANCHES])  # annotated above
    rows: dict[int, ConversationRow] = {}
    for one in found:
        rows.setdefault(one.root_pk, ConversationRow(one, one.status, one.last))
    shown = list(rows.values())[:MAX_CONVERSATIONS]
    has_earlier = len(rows) > len(shown) or len(found) == MAX_BRANCHES
    last: Any = shown[-1].conversation if has_earlier else None
    return ConversationPage(shown, last.last_pk if last else None)


def find_conversations(
    user: User, conversations: QuerySet[Conversation], text: str
) -> list[ConversationRow]:
    """Return the rows with `text` in the title, a question or an answer.

    Each conversation is one row, with the branch of its newest message that matches.
    """
    hits: dict[int, tuple[int, str]] = {}
    for run in query_matching_runs(user, conversations, text):
        if excerpt := find_message_excerpt(run, text):
            hits.setdefault(run.conversation_id or 0, (run.pk, excerpt))
    matches = Q(pk__in=hits) | Q(title__icontains=text)
    found: Iterable[Any] = conversations.filter(matches)[:MAX_BRANCHES]
    rows: dict[int, ConversationRow] = {}
    for one in sorted(
        found, key=lambda one: hits.get(one.pk, (0, ""))[0], reverse=True
    ):
        run_pk, excerpt = hits.get(one.pk, (None, ""))
        row = ConversationRow(one, one.status, one.last, excerpt, run_pk)
        rows.setdefault(one.root_pk, row)
    newest = sorted(rows.values(), key=lambda row: -row.conversation.last_pk)  # type: ignore[attr-defined]  # annotated above
    return newest[:MAX_CONVERSATIONS]


def query_matching_runs(
    user: User, conversations: QuerySet[Conversation], text: str
) -> QuerySet[Run]:
    """Return the newest runs that may have `text` in a message.

    Ended runs have searchable text soon after their end; of the others only the
    beginning of the question is searched.
    """
    own = conversations.order_by().values("pk")
    indexed = Q(indexed=True, search_row__text__contains=text.lower())
    pending = Q(indexed=False, title__icontains=text)
    runs = Run.objects.filter(indexed | pending, owner=user, conversation__in=own)
    runs = runs.only("conversation", "status", "inputs", "output", "title")
    return runs.order_by("-pk")[:MAX_FOUND_RUNS]


def find_message_excerpt(run: Run, text: str) -> str:
    """Return where the question or the answer has `text`; empty if neither has."""
    if excerpt := find_excerpt([extract_question(run.inputs)], text):
        return _("You: %(message)s") % {"message": excerpt}
    return find_excerpt([run.answer] if isinstance(run.answer, str) else [], text)


def group_found(rows: list[ConversationRow]) -> Iterable[ConversationGroup]:
    if rows:
        heading = ngettext(
            "%(count)s conversation", "%(count)s conversations", len(rows)
        )
        yield ConversationGroup(heading % {"count": number(len(rows))}, rows)


def group_by_age(rows: list[ConversationRow]) -> Iterable[ConversationGroup]:
    """Yield the conversations by the age of their newest message."""
    now, rest = timezone.now(), rows
    for age, heading in AGE_GROUPS:
        younger = [row for row in rest if row.conversation.last_at > now - age]  # type: ignore[attr-defined]  # annotated above
        if younger:
            yield ConversationGroup(str(heading), younger)
        rest = rest[len(younger) :]  # newest first
    if rest:
        yield ConversationGroup(_("Older"), rest)
