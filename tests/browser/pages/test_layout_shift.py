"""Pages stay where they are while they load, and while runs change them."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.driver.chromium import seen_by
from tests.browser.driver.shifts import find_shifts, watch_shifts
from tests.browser.runs.test_run_page import OVER, begun, person
from tests.browser.shots import ADMIN, PAGES, SIZES
from tests.browser.site import Site, running_site

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LOADED = [
    *("home", "runs", "approvals", "run", "run-running", "run-failed", "run-approval"),
    *("agent", "agent-edit", "agent-new", "chat", "chat-agent", "chat-conversation"),
    *("tools", "tool", "admin-tool-python"),
    *("experiment", "experiment-live", "dataset", "annotate", "queue", "rule"),
    *("agent-publish", "usage"),
]
LONG = 60_000
NEW_RUN = """
import django
django.setup()
from runs.models import Agent
from tests.make import make_run
agent = Agent.objects.get(pk=1)
print(make_run(agent.owner, agent=agent, status="succeeded", output="Done").pk)
"""


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """A site with a worker, and agents of two paces."""
    with running_site(seed="tests.browser.seed.live", worker=True) as site:
        yield site


def window(size: str) -> dict[str, int]:
    width, height = SIZES[size]
    return {"width": width, "height": height}


@pytest.mark.parametrize("size", SIZES)
def test_pages_do_not_move_while_they_load(browser, lived_in, size):
    context = browser.new_context(viewport=window(size))
    watch_shifts(context)
    seen_by(context, lived_in.url, "admin").close()
    moved = {}

    for name in LOADED:
        page = context.new_page()
        page.goto(lived_in.url + {**PAGES, **ADMIN}[name])
        page.wait_for_timeout(400)  # what is loaded later, and live parts
        moved[name] = find_shifts(page)
        page.close()

    context.close()
    assert {name: shifts for name, shifts in moved.items() if shifts} == {}


@pytest.mark.parametrize("size", SIZES)
def test_what_the_browser_kept_is_there_at_the_first_paint(browser, lived_in, size):
    context = browser.new_context(viewport=window(size))
    watch_shifts(context)
    page = seen_by(context, lived_in.url, "admin")
    page.goto(lived_in.url + PAGES["run"])
    page.evaluate("localStorage.setItem('run-pane-width', 30)")
    page.goto(f"{lived_in.url}/chat/glossary/")
    page.fill("[name=input]", "one\n" * 14)
    moved = []

    for path in ["/chat/glossary/", *[PAGES["run"]] * 5]:
        page.goto(lived_in.url + path)
        page.wait_for_timeout(400)
        moved += find_shifts(page)

    page.goto(f"{lived_in.url}/chat/glossary/")
    expect(page.locator("[name=input]")).to_have_value("one\n" * 14)
    context.close()
    assert moved == []


@pytest.mark.parametrize("size", SIZES)
def test_pages_do_not_move_while_a_run_changes_them(browser, site, size):
    options = {"viewport": window(size), "reduced_motion": "no-preference"}
    with person(browser, site, **options) as context:
        watch_shifts(context)
        begun(context, site, "brisk").wait_for_selector(OVER)
        pages = {path: context.new_page() for path in ("/", "/runs/")}
        for path, page in pages.items():
            page.goto(site.url + path)

        run = begun(context, site, "brisk")
        number = re.search(r"/runs/(\d+)/", run.url)[1]
        run.wait_for_selector(OVER)
        for page in pages.values():
            row = page.locator(f"a[href*='/runs/{number}/']").first
            expect(row).to_be_attached(timeout=LONG)
        for page in pages.values():
            done = page.locator("tr, li").filter(has=link_to(page, number)).first
            expect(done.locator("[data-status=succeeded]").first).to_be_attached()
        moved = {path: find_shifts(page) for path, page in {**pages, "": run}.items()}

    assert moved == {"/": [], "/runs/": [], "": []}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("path", ["/", "/runs/"])
def test_rows_of_a_full_list_do_not_jump_when_a_run_is_added(
    browser, lived_in, path, size
):
    context = browser.new_context(viewport=window(size), reduced_motion="no-preference")
    watch_shifts(context)
    page = seen_by(context, lived_in.url, "admin")
    page.goto(lived_in.url + path)
    table = page.locator("[data-slides]").first.locator("xpath=ancestor::table")
    if path == "/":
        table.evaluate("table => table.scrollIntoView({ block: 'center' })")

    number = lived_in.run("-c", NEW_RUN).strip()
    expect(link_to(page, number).first).to_be_visible(timeout=LONG)
    page.wait_for_timeout(300)  # the rows slide

    moved = find_shifts(page)
    context.close()
    assert moved == []


def link_to(page: Page, number: str):
    return page.locator(f"a[href*='/runs/{number}/']")
