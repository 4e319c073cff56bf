"""What every page tells its person: how much needs them, and how the workers are.

One small query a second for all open pages together, and none while no page is open.
Redis is not asked: a busy worker's notices would cost more than they tell here.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Sum
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html

from runs.live.doors import Person
from runs.live.sse import element
from runs.models import Decision
from runs.views.frame import Health, health_words

LOOK_SECONDS = 1.0
"""Between two looks at what needs whom."""
HEALTH_LOOKS = 5
"""Every how many looks the workers are looked at, too."""
AT_ONCE = 200
"""Pages that are woken before others get their turn."""


@dataclass(frozen=True)
class Needs:
    """How many open questions wait for whom."""

    of_owners: dict[int, int]
    of_groups: dict[int, int]
    """Questions that the members of a group answer."""
    sign: tuple[int, int] = (0, 0)
    """Differs whenever other questions are open."""

    def of(self, person: Person) -> int:
        """Return how many wait for this person."""
        if person.is_superuser:
            return sum(self.of_owners.values()) + sum(self.of_groups.values())
        own = self.of_owners.get(person.pk, 0)
        return own + sum(self.of_groups.get(group, 0) for group in person.groups)


@dataclass(frozen=True)
class Told:
    """What a page says at its top."""

    count: int | None = None
    health: Health | None = None
    sign: tuple[int, int] | None = None


class Watcher:
    """One open page of one person."""

    def __init__(
        self, person: Person, event: asyncio.Event, *, in_inbox: bool = False
    ) -> None:
        self.person, self.event, self.in_inbox = person, event, in_inbox
        self.told = Told()


class People:
    """Every open page, and what is known of what they tell."""

    def __init__(
        self, in_thread: Callable[[Callable[[], Any]], Awaitable[Any]]
    ) -> None:
        self._in_thread = in_thread
        self._watchers: set[Watcher] = set()
        self._is_wanted = asyncio.Event()
        self._needs: Needs | None = None
        self._health: Health | None = None
        self._looks = 0

    def enter(self, watcher: Watcher) -> None:
        """Tell this page from now on; one that waited for none looks at once."""
        self._watchers.add(watcher)
        self._is_wanted.set()

    def leave(self, watcher: Watcher) -> None:
        """Forget a page; with the last one, stop looking."""
        self._watchers.discard(watcher)
        if not self._watchers:
            self._is_wanted.clear()
            self._needs, self._health, self._looks = None, None, 0

    def wake(self) -> None:
        """Let every page look, since the server ends."""
        for watcher in self._watchers:
            watcher.event.set()

    async def look(self) -> None:
        """Look once, wake the pages where anything has changed, and rest."""
        await self._is_wanted.wait()
        before = (self._needs, self._health)
        needs = await self._in_thread(read_needs)
        if self._looks % HEALTH_LOOKS == 0:
            self._health = await self._in_thread(health_words)
        self._looks += 1
        self._needs = needs
        if before != (self._needs, self._health):
            for place, watcher in enumerate(list(self._watchers), 1):
                watcher.event.set()
                if place % AT_ONCE == 0:
                    await asyncio.sleep(0)
        await asyncio.sleep(LOOK_SECONDS)

    def news_for(self, watcher: Watcher) -> bytes:
        """Return what the page has not told yet; nothing where that is all."""
        needs = self._needs
        if needs is None:
            return b""
        now = Told(
            needs.of(watcher.person),
            self._health,
            needs.sign if watcher.in_inbox else None,
        )
        before, watcher.told = watcher.told, now
        parts = b""
        if now.count != before.count:
            parts += count_parts(needs.of(watcher.person))
        if now.health != before.health and now.health is not None:
            parts += health_part(now.health)
        if before.sign is not None and now.sign != before.sign:
            parts += inbox_parts()
        return parts + b"\n" if parts else b""


def read_needs() -> Needs:
    """Count the open questions by who answers them."""
    rows = (
        Decision.objects.open()
        .values_list("approvers", "step__run__owner")
        .annotate(n=Count("pk"), keys=Sum("pk"))
        .order_by()
    )
    owners: dict[int, int] = {}
    groups: dict[int, int] = {}
    count = keys = 0
    for group, owner, n, some_keys in rows:
        count, keys = count + n, keys + some_keys
        if group is None:
            owners[owner] = owners.get(owner, 0) + n
        else:
            groups[group] = groups.get(group, 0) + n
    return Needs(owners, groups, (count, keys))


def count_parts(waiting: int) -> bytes:
    """Return the number of questions beside the word Approvals, on top and below."""
    return b"".join(
        element(
            f"#part-{name}",
            "outerHTML",
            render_to_string(
                f"parts/_{name.replace('-', '_')}.html", {"waiting": waiting}
            ),
        )
        for name in ("needs", "needs-tab")
    )


def health_part(health: Health) -> bytes:
    """Return the signs of life of the workers."""
    frame = {"health": health, "workers_url": reverse("worker-list")}
    html = render_to_string("parts/_health.html", {"frame": frame})
    return element("#part-health", "outerHTML", html)


def inbox_parts() -> bytes:
    """Return parts that let the inbox's list and its numbers load themselves anew."""
    return b"".join(
        element(
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
