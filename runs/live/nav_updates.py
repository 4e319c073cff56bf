"""Updates of every page's header: open approvals and worker health.

One small query per second for all open pages, and none while no page is open. This
does not use Redis: reading a busy worker's notices would cost more than the query.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count, Sum
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import translation
from django.utils.html import format_html

from runs.live.auth import Person
from runs.live.sse import format_element_update
from runs.models import Decision
from runs.services.health.workers import get_worker_health
from runs.ui.context_processors import HealthSummary, summarize_worker_health

POLL_SECONDS = 1.0
"""Between two reads of the open decisions."""
POLLS_PER_HEALTH_CHECK = 5
"""Worker health is read with every nth poll."""
MAX_WAKEUPS = 200
"""Pages woken before the event loop runs other tasks."""


@dataclass(frozen=True)
class OpenApprovals:
    """Open decisions by who can make them."""

    by_owner: dict[int, int]
    by_group: dict[int, int]
    """Decisions that the members of a group make."""
    not_by_owner: dict[tuple[int | None, int], int] = field(default_factory=dict)
    """Those among them, by group and owner, that the run's owner may not make."""
    fingerprint: tuple[int, int] = (0, 0)
    """Changes with the set of open decisions."""

    def count_for(self, person: Person) -> int:
        if person.is_superuser:
            count = sum(self.by_owner.values()) + sum(self.by_group.values())
        else:
            count = self.by_owner.get(person.pk, 0)
            count += sum(self.by_group.get(group, 0) for group in person.groups)
        return count - sum(
            n
            for (group, owner), n in self.not_by_owner.items()
            if owner == person.pk
            and (person.is_superuser or group is None or group in person.groups)
        )


@dataclass(frozen=True)
class NavState:
    count: int | None = None
    health: HealthSummary | None = None
    fingerprint: tuple[int, int] | None = None


class NavSubscriber:
    """One open page of one user."""

    def __init__(
        self, person: Person, event: asyncio.Event, *, in_inbox: bool = False
    ) -> None:
        self.person, self.event, self.in_inbox = person, event, in_inbox
        self.last_sent = NavState()


class NavUpdates:
    """All open pages, and the state that they show."""

    def __init__(
        self, in_thread: Callable[[Callable[[], Any]], Awaitable[Any]]
    ) -> None:
        self._run_in_thread = in_thread
        self._subscribers: set[NavSubscriber] = set()
        self._is_wanted = asyncio.Event()
        self._open_approvals: OpenApprovals | None = None
        self._health: dict[str, HealthSummary] = {}
        """By language."""
        self._polls = 0

    def subscribe(self, watcher: NavSubscriber) -> None:
        """Add a page; the first one starts the polling."""
        self._subscribers.add(watcher)
        self._is_wanted.set()

    def unsubscribe(self, watcher: NavSubscriber) -> None:
        """Remove a page; the last one stops the polling."""
        self._subscribers.discard(watcher)
        if not self._subscribers:
            self._is_wanted.clear()
            self._open_approvals, self._health, self._polls = None, {}, 0

    def wake(self) -> None:
        """Wake all pages, because the server stops."""
        for watcher in self._subscribers:
            watcher.event.set()

    async def poll(self) -> None:
        """Read the state once, wake all pages if it has changed, and sleep."""
        await self._is_wanted.wait()
        before = (self._open_approvals, self._health)
        needs = await self._run_in_thread(count_open_approvals)
        if self._polls % POLLS_PER_HEALTH_CHECK == 0:
            languages = {one.person.language for one in self._subscribers}
            self._health = await self._run_in_thread(
                lambda: summarize_health_by_language(languages)
            )
        self._polls += 1
        self._open_approvals = needs
        if before != (self._open_approvals, self._health):
            for place, watcher in enumerate(list(self._subscribers), 1):
                watcher.event.set()
                if place % MAX_WAKEUPS == 0:
                    await asyncio.sleep(0)
        await asyncio.sleep(POLL_SECONDS)

    def render_news_for(self, watcher: NavSubscriber) -> bytes:
        """Return the updates that the page lacks; empty if there are none."""
        needs = self._open_approvals
        if needs is None:
            return b""
        now = NavState(
            needs.count_for(watcher.person),
            self._health.get(watcher.person.language),
            needs.fingerprint if watcher.in_inbox else None,
        )
        before, watcher.last_sent = watcher.last_sent, now
        parts = b""
        with translation.override(watcher.person.language):
            if now.count != before.count:
                parts += render_count_update(needs.count_for(watcher.person))
            if now.health != before.health and now.health is not None:
                parts += render_health_update(now.health)
        # Also at the beginning: the page may be older than the connection, for example
        # after its tab was in the background.
        if now.fingerprint != before.fingerprint:
            parts += render_inbox_reload()
        return parts + b"\n" if parts else b""


def count_open_approvals() -> OpenApprovals:
    """Count the open decisions by owner and by group of approvers."""
    rows = (
        Decision.objects.open()
        .values_list("approvers", "step__run__owner", "second_person")
        .annotate(n=Count("pk"), keys=Sum("pk"))
        .order_by()
    )
    owners: dict[int, int] = {}
    groups: dict[int, int] = {}
    not_by_owner: dict[tuple[int | None, int], int] = {}
    count = keys = 0
    for group, owner, second_person, n, some_keys in rows:
        count, keys = count + n, keys + some_keys
        if group is None:
            owners[owner] = owners.get(owner, 0) + n
        else:
            groups[group] = groups.get(group, 0) + n
        if second_person:
            not_by_owner[group, owner] = n
    return OpenApprovals(owners, groups, not_by_owner, (count, keys))


def summarize_health_by_language(languages: set[str]) -> dict[str, HealthSummary]:
    health, found = get_worker_health(), {}
    for language in languages:
        with translation.override(language):
            found[language] = summarize_worker_health(health)
    return found


def render_count_update(waiting: int) -> bytes:
    return b"".join(
        format_element_update(
            f"#part-{name}",
            "outerHTML",
            render_to_string(
                f"parts/_{name.replace('-', '_')}.html", {"waiting": waiting}
            ),
        )
        for name in ("needs", "needs-tab")
    )


def render_health_update(health: HealthSummary) -> bytes:
    frame = {"health": health, "workers_url": reverse("worker-list")}
    html = render_to_string("parts/_health.html", {"frame": frame})
    return format_element_update("#part-health", "outerHTML", html)


def render_inbox_reload() -> bytes:
    """Return elements that reload the list and the counts of the approvals page."""
    return b"".join(
        format_element_update(
            f"#{name}-pulse",
            "outerHTML",
            format_html(
                '<div id="{}-pulse" hidden hx-get="{}" hx-trigger="load" '
                'hx-include="#approval-here" hx-target="#{}" '
                'hx-swap="outerMorph"></div>',
                name,
                reverse(name),
                name,
            ),
        )
        for name in ("approval-list", "approval-head")
    )
