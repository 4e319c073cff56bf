"""How many clicks a task takes, from the home page.

Counted are clicks on links, buttons and menus; a choice from a list counts as two.
Texts are typed, and fields are reached by Tab.
"""

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.driver.chromium import signed_in
from tests.browser.site import Site, running_site
from tests.tools.http_server import Answer, Server, serve
from tools.builtin.weather_sample import weather_sample

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LONG = 60_000
"""Milliseconds a busy machine may take for anything here."""


class Person:
    """Somebody at a page, whose clicks are counted."""

    def __init__(self, page: Page) -> None:
        self.page, self.clicks = page, 0

    def click(self, selector: str) -> None:
        self.page.locator(selector).first.click()
        self.page.wait_for_load_state()  # of a page that it leads to, with its scripts
        self.clicks += 1

    def choose(self, selector: str, label: str) -> None:
        self.page.locator(selector).first.select_option(label)
        self.clicks += 2

    def write(self, selector: str, text: str) -> None:
        self.page.locator(selector).first.fill(text)

    def see(self, selector: str, text: str | re.Pattern[str]) -> None:
        expect(self.page.locator(selector).first).to_contain_text(text, timeout=LONG)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """A site with a worker, and an agent whose tool fails; it may call this machine."""
    allowed = "provider=127.0.0.1;tool=127.0.0.1"
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AGENTSITE_PRIVATE_HOSTS", allowed)
        with running_site(seed="tests.browser.seed.fork", worker=True) as site:
            yield site


@pytest.fixture
def orders() -> Iterator[Server]:
    """A service that knows where each order is."""
    with serve(lambda _: Answer({"state": "on its way"})) as server:
        yield server


@pytest.fixture
def ann(browser, site) -> Iterator[Person]:
    """Ann, who is signed in and looks at the home page."""
    context = browser.new_context(viewport={"width": 1440, "height": 1000})
    context.set_default_timeout(LONG)
    page = signed_in(context, site.url, "ann", "secret")
    page.goto(f"{site.url}/")
    yield Person(page)
    context.close()


def test_an_agent_is_created_tested_published_and_run_in_12(ann):
    ann.click("nav a:has-text('Agents')")
    ann.click("a:has-text('New agent')")
    ann.write("input[name=name]", "asks")
    ann.click("a:has-text('Add tools and agents')")
    ann.choose("#agent-library tr:has-text('weather_sample') select", "Always ask")
    ann.click("#agent-library button:has-text('Done')")
    ann.click("#agent-form button:has-text('Create')")
    ann.page.wait_for_url(re.compile(r"/agents/\d+/edit/$"))

    ann.write("textarea[name=input]", "Plan a day in Beijing")
    ann.click("#agent-test-form button:has-text('Send')")
    ann.click("#agent-try button:has-text('Approve')")
    ann.see("#agent-try .answer .prose", "Beijing")

    ann.click("summary:has-text('Publish version 1')")
    ann.click("#agent-publish button:has-text('Publish')")
    ann.see("#part-toasts", "Version 1 published")
    ann.write("textarea[name=input]", "Plan a day in Beijing")
    ann.click("#agent-run-form button:has-text('Run')")
    ann.page.wait_for_url("**/runs/*/")

    assert ann.clicks <= 12


def test_a_failed_run_is_found_forked_and_compared_in_6(ann, site):
    ann.page.goto(f"{site.url}/agents/")
    ann.page.click("a:text-is('brittle')")
    ann.write("[name=input]", "Plan a day in Beijing")
    ann.page.click("button:has-text('Run')")
    ann.page.wait_for_selector("#run-progress [data-status=failed]")
    ann.page.goto(site.url)

    ann.click("nav a:has-text('Runs')")
    ann.click("#run-list tr:has([data-status=failed]) .c-q a")
    ann.click("#run-step-actions a:has-text('Fork here')")
    observation = json.dumps(weather_sample(city="Beijing"))
    ann.write("[name=observation]", observation)
    ann.click("[name=has_failed]")
    ann.click("button:has-text('Fork at step 2')")
    ann.page.wait_for_selector("#run-progress [data-status=succeeded]")
    ann.click("#run-forks a:has-text('Compare with run')")
    ann.see("#run-compare-steps", re.compile("of both runs|Step 2"))

    assert ann.clicks <= 6


def test_a_new_http_tool_is_tried_in_5(ann, orders):
    ann.click("nav a:has-text('Tools')")
    ann.click("summary:has-text('New tool')")
    ann.click("a[href$='/new/http/']")
    ann.write("[name=url]", f"{orders.url}/orders/{{order_id}}")
    ann.write("[name=arg-order_id]", "o_1")
    ann.click("[data-call]")
    ann.see("#tool-result", "200 OK")
    ann.see("#tool-result", "on its way")

    assert ann.clicks <= 5
    assert [got.path for got in orders.got] == ["/orders/o_1"]
