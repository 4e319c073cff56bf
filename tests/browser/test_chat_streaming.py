"""An answer in the chat while the model writes it, in Chromium with a real worker."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.driver.chromium import listen
from tests.browser.site import Site, running_site
from tests.browser.test_run_page import begun, person

pytestmark = pytest.mark.browser

LONG = 60_000
SHIFTS = """() => { window.shifts = []; new PerformanceObserver((list) => {
  for (const one of list.getEntries())
    window.shifts.push([one.value, one.hadRecentInput, one.sources.map(
      (s) => s.node?.id || s.node?.className || s.node?.nodeName)]);
}).observe({ type: "layout-shift", buffered: true }); }"""
RAW = """() => { window.raw = []; new MutationObserver(() => {
  const text = document.querySelector("[id^=turn-draft-], #draft-text")?.innerText;
  if (text && /\\*\\*|\\||#/.test(text)) window.raw.push(text);
}).observe(document.body, { childList: true, subtree: true, characterData: true }); }"""


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """A site with a worker, and agents of two paces."""
    with running_site(seed="tests.browser.seed.live", worker=True) as site:
        yield site


def layout_shift(page: Page) -> float:
    """Return the shifts that no key or click explains."""
    shifts = page.evaluate("window.shifts")
    return sum(value for value, is_expected, _ in shifts if not is_expected)


def focused(page: Page) -> str:
    return str(page.evaluate("document.activeElement.name ?? ''"))


def test_text_is_formatted_while_it_is_written_and_kept_after_stop(browser, site):
    with person(browser, site) as context:
        page = context.new_page()
        heard = listen(page)
        page.goto(f"{site.url}/chat/slow/")
        assert focused(page) == "input"
        page.keyboard.type("Plan a day out")
        page.keyboard.press("Shift+Enter")
        page.keyboard.type("in Oslo")
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile(r"/chat/slow/\d+/"))
        page.evaluate(SHIFTS)
        page.evaluate(RAW)
        assert focused(page) == "input"
        expect(page.locator(".ask")).to_have_text("Plan a day out\nin Oslo")
        draft = page.locator("[id^=turn-draft-]")
        expect(draft.locator("h1")).to_contain_text("Oslo", timeout=LONG)
        expect(draft.locator("strong")).to_have_text("Weather:", timeout=LONG)
        expect(draft.locator("td").first).to_have_text("09:00", timeout=LONG)
        assert page.evaluate("window.raw") == []
        assert layout_shift(page) < 0.02, page.evaluate("window.shifts")
        page.get_by_role("button", name="Stop").click()
        kept = page.locator(".answer .kept")
        expect(kept.locator("td").first).to_have_text("09:00", timeout=LONG)
        expect(page.locator(".stopped-note")).to_have_text("Stopped")
        page.reload()
        expect(kept.locator("h1")).to_contain_text("Oslo")
        assert heard == []


def test_an_answer_takes_the_place_of_its_draft_without_a_jump(browser, site):
    with person(browser, site) as context:
        page = context.new_page()
        heard = listen(page)
        page.goto(f"{site.url}/chat/brisk/")
        page.fill("[name=input]", "Plan a day out in Oslo")
        page.press("[name=input]", "Enter")
        page.wait_for_url(re.compile(r"/chat/brisk/\d+/"))
        page.evaluate(SHIFTS)
        page.evaluate(RAW)
        page.evaluate("window.stayed = true")
        expect(page.get_by_role("button", name="Regenerate")).to_be_visible(
            timeout=LONG
        )
        assert page.evaluate("window.stayed") is True
        assert page.evaluate("window.raw") == []
        assert layout_shift(page) < 0.02, page.evaluate("window.shifts")
        assert focused(page) == "input"
        assert heard == []


def test_a_stopped_run_shows_what_the_model_had_written(browser, site):
    with person(browser, site) as context:
        page = begun(context, site, "slow")
        page.evaluate(SHIFTS)
        page.evaluate(RAW)
        expect(page.locator("#draft-text td").first).to_be_visible(timeout=LONG)
        assert page.evaluate("window.raw") == []
        page.locator("#run-actions button:has-text('Stop')").click()
        expect(page.locator("#answer-kept td").first).to_be_visible(timeout=LONG)
        expect(page.locator("#run-answer")).to_contain_text("Stopped by ann")
        page.reload()
        expect(page.locator("#answer-kept h1")).to_be_visible()
