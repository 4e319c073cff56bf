"""Pages on a phone and wide, light and dark, and by keys.

A page is opened once; then its window grows and its theme changes. A commit is checked
with one page of each layout; AGENTSITE_TEST_ALL_PAGES=1 checks every page.
"""

import os
from collections.abc import Callable, Iterator
from functools import cache

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Response

from tests.browser.driver.axe import COLOURS, WCAG, violations
from tests.browser.driver.chromium import listen, overflow, seen_by
from tests.browser.driver.focus import hidden_focus
from tests.browser.driver.moves import beat
from tests.browser.shots import PAGES, SIZES, moves_of_all, opening
from tests.browser.site import Site

pytestmark = [pytest.mark.browser, pytest.mark.slow]

RULES = {"light": WCAG, "dark": COLOURS}
EVERY_LAYOUT = {
    "home",
    "chat",
    "chat-agent",
    "chat-conversation",
    "chat-new",
    "search",
    "shortcuts",
    "notifications",
    "runs",
    "runs-chosen",
    "runs-peek",
    "approval",
    "approvals-several",
    "run-done",
    "run-running",
    "run-timeline",
    "run-failed",
    "run-long-step",
    "fork",
    "compare",
    "tools",
    "tools-chosen",
    "tool",
    "tool-python",
    "agents",
    "agent",
    "agent-new",
    "agent-edit",
    "agent-gate",
    "agent-versions",
    "agent-publish",
    "dataset",
    "experiment",
    "experiment-live",
    "queue",
    "annotate",
    "rule",
    "rule-runs",
    "playground",
    "provider-mistakes",
    "webhook",
    "hooks",
    "schedule-edit",
    "usage",
    "workers",
    "admin-tool-http",
    "admin-server-change",
    "new-agents",
    "shared",
    "sign-in",
    "missing",
    "broken",
}
ANSWERS = {"missing": 404, "new-forbidden": 403, "run-button": 405, "shared-over": 404}
"""Of the pages that do not answer 200."""
OPENED = opening(PAGES)
LOOKS = [
    pytest.param(
        person,
        OPENED[name] if getattr(move, "func", None) is beat else move,
        ANSWERS.get(name, 200),
        id=name,
    )
    for person, moves in moves_of_all().items()
    for name, move in moves.items()
    if name in EVERY_LAYOUT or os.environ.get("AGENTSITE_TEST_ALL_PAGES")
]
"""Who opens a page, how, and the status of the response; a beat changes the site."""
Opener = Callable[[str], Page]


@pytest.fixture(scope="module")
def phone(browser: Browser, lived_in: Site) -> Iterator[Opener]:
    """Open an empty page of a person, who signs in once."""
    opened: list[BrowserContext] = []

    @cache
    def context_of(person: str) -> BrowserContext:
        context = browser.new_context(viewport=window("390"), reduced_motion="reduce")
        opened.append(context)
        seen_by(context, lived_in.url, person).close()
        return context

    yield lambda person: context_of(person).new_page()
    for context in opened:
        context.close()


@pytest.mark.parametrize(("person", "move", "status"), LOOKS)
def test_nothing_is_wrong_with_the_page(phone, lived_in, person, move, status):
    page = phone(person)
    received, hosts, answers = listen(page), set(), []
    page.on("request", lambda request: hosts.add(request.url.split("/")[2]))
    page.on("response", lambda answer: answers.append(answer))

    move(page, lived_in)
    faults = {size: faults_at(page, size) for size in ("390", "1440")}

    page.close()
    assert faults == {"390": [], "1440": []}
    assert [line for line in received if f" {status} (" not in line] == []
    assert last_page(answers).status == status
    assert hosts == {lived_in.url.split("/")[2]}


def faults_at(page: Page, size: str) -> list[str]:
    """Return what is wrong in a window of `size`."""
    page.set_viewport_size(window(size))
    page.evaluate("new Promise(requestAnimationFrame)")  # after what a resize starts
    found = [f"{line} (focus)" for line in hidden_focus(page)]
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        found += [f"{line} ({theme})" for line in violations(page, RULES[theme])]
        if overflow(page) > 0:
            found.append(f"{overflow(page)} px too wide ({theme})")
    return found


def last_page(answers: list[Response]) -> Response:
    """Return the answer that is shown."""
    return [one for one in answers if one.request.is_navigation_request()][-1]


def window(size: str) -> dict[str, int]:
    """Return the width and height of a window."""
    width, height = SIZES[size]
    return {"width": width, "height": height}
