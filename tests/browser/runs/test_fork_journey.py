"""A failure is understood and mended by a fork, compared, shared and exported."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.driver.chromium import listen, signed_in
from tests.browser.site import Site, running_site
from tools.builtin.weather_sample import weather_sample

pytestmark = pytest.mark.browser

QUESTION = "根据北京的天气情况，制定一个出游计划"
LONG = 60_000
"""Milliseconds a busy machine may take for anything here."""


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """A site with a worker, and an agent whose tool fails."""
    with running_site(seed="tests.browser.seed.fork", worker=True) as site:
        yield site


@pytest.fixture
def page(browser: Browser, site: Site) -> Iterator[Page]:
    """A page of ann, who is signed in."""
    context = browser.new_context()
    context.set_default_timeout(LONG)
    expect.set_options(timeout=LONG)
    yield signed_in(context, site.url, "ann", "secret")
    context.close()


def failed_run(page: Page, site: Site) -> str:
    """Start the agent through its page; return the address of the run that failed."""
    page.goto(f"{site.url}/agents/")
    page.click("a:text-is('brittle')")
    page.fill("[name=input]", QUESTION)
    page.click("button:has-text('Run')")
    page.wait_for_url(re.compile(r"/runs/\d+/"))
    page.wait_for_selector("#run-progress [data-status=failed]")
    return page.url.partition("?")[0]


def test_a_failed_run_is_mended_by_a_fork_and_compared(page, site, browser, tmp_path):
    received = listen(page)
    parent = failed_run(page, site)
    page.goto(f"{parent}?step=2")
    page.click("#run-step-actions a:has-text('Fork here')")
    expect(page.locator("h1")).to_have_text("Fork at step 2")
    expect(page.locator("[name=has_failed]")).to_be_checked()

    observation = json.dumps(weather_sample(city="北京"), ensure_ascii=False)
    page.fill("[name=observation]", observation)
    page.uncheck("[name=has_failed]")
    page.click("button:has-text('Fork at step 2')")
    page.wait_for_selector("#run-progress [data-status=succeeded]")
    page.reload()
    expect(page.locator("#answer-text")).to_contain_text("北京")
    expect(page.locator("#run-step-1")).to_contain_text("reused")
    expect(page.locator("#run-step-2")).to_contain_text("edited")
    fork = page.url.partition("?")[0]

    page.click("#run-forks a:has-text('Compare with run')")
    expect(page.locator("#run-compare-steps")).to_contain_text(
        "Step 1 of both runs: the"
    )
    expect(page.locator("#run-compare-steps ins").first).to_be_visible()
    page.click("#run-compare-steps nav a:has-text('All')")
    page.wait_for_url("**show=all**")
    expect(page.locator("#run-compare-steps")).not_to_contain_text("of both runs: the")

    page.goto(parent)
    page.click("#run-forks summary")
    expect(page.locator("#run-forks li")).to_have_count(2)
    shared_with_a_stranger(page, browser, fork)
    opened_offline(page, browser, fork, tmp_path)
    assert received == []


def shared_with_a_stranger(page: Page, browser: Browser, run: str) -> None:
    """Make a link, open it without an account, take it back."""
    page.goto(run)
    page.click("#run-actions > a:has-text('Share')")
    page.click("button:has-text('Create link')")
    link = page.locator("#part-secret textarea").input_value()
    context = browser.new_context()
    stranger = context.new_page()
    stranger.goto(link)
    expect(stranger.locator(".document > .head h1")).to_have_text(QUESTION)
    stranger.click("#step-2 summary")
    expect(stranger.locator("#step-2")).to_contain_text("edited by a person")
    page.click("#share-list button:has-text('Revoke')")
    expect(page.locator("#share-list")).to_contain_text("No active links")
    stranger.reload()
    expect(stranger.locator("h1")).to_have_text("Link not found")
    context.close()


def opened_offline(page: Page, browser: Browser, run: str, folder: Path) -> None:
    """Export the run as one file, and open it where there is no network."""
    page.goto(run)
    page.click("#run-actions summary:has-text('More')")
    with page.expect_download() as download:
        page.click("#run-actions a:has-text('HTML, opens offline')")
    file = folder / "run.html"
    download.value.save_as(file)
    context = browser.new_context(offline=True, java_script_enabled=False)
    reader = context.new_page()
    received, asked = listen(reader), []
    reader.on("request", lambda request: asked.append(request.url))
    reader.goto(file.as_uri())
    reader.click("#step-2 summary")
    expect(reader.locator("#step-2 .code").first).to_be_visible()
    expect(reader.locator(".document > .head h1")).to_have_text(QUESTION)
    context.close()
    assert asked == [file.as_uri()]
    assert received == []
