"""The run page in Chromium, with a real worker."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, Route, expect
from playwright.sync_api import Error as PlaywrightError

from tests.browser.driver.chromium import listen, overflow, signed_in
from tests.browser.site import Site, running_site
from tests.support.timing import wait_until

pytestmark = pytest.mark.browser

QUESTION = "根据北京的天气情况，制定一个出游计划"
LONG = 60_000
FAILED_RUN = """
import django
django.setup()
from runs.models import Agent
from tests.make import make_run
agent = Agent.objects.get(pk=1)
print(make_run(agent.owner, agent=agent, status="failed", error_message="No.").pk)
"""
RESUMED_RUN = """
import django
django.setup()
from django.db.models import F
from runs.models import Run
Run.objects.filter(pk={number}).update(
    status="succeeded", seq=F("seq") + 5, error_message="", output="It is sunny."
)
"""
OVER = "#run-progress [data-status=succeeded]"
TO_STEPS = "#run-views a:first-child"
"""On a phone: a page that is loaded after the end of its run shows the answer."""
RESTORED = """() => { window.restored = new Promise((done) => {
  document.addEventListener("htmx:after:swap", (event) => {
    if (event.detail.ctx.target === document.body) setTimeout(done);
  });
}); }"""


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """A site with a worker, and agents of several paces."""
    with running_site(seed="tests.browser.seed.live", worker=True) as site:
        yield site


@contextmanager
def person(browser: Browser, site: Site, **options: object) -> Iterator[BrowserContext]:
    """A browser in which ann is signed in."""
    context = browser.new_context(**options)
    context.set_default_timeout(LONG)
    signed_in(context, site.url, "ann", "secret").close()
    yield context
    context.close()


def begun(context: BrowserContext, site: Site, agent: str) -> Page:
    """Start a run through the pages; return the run page."""
    page = context.new_page()
    page.goto(f"{site.url}/agents/")
    page.click(f"a:text-is('{agent}')")
    page.fill("[name=input]", QUESTION)
    page.click("button:has-text('Run')")
    page.wait_for_url(re.compile(r"/runs/\d+/"))
    return page


def stop(page: Page) -> None:
    """Stop the run, unless it has ended meanwhile."""
    buttons = page.locator("button:has-text('Stop')")
    buttons.evaluate_all("buttons => buttons[0]?.click()")


def written(page: Page) -> Locator:
    """Return what the model writes, or has written if the machine was too slow."""
    return page.locator("#draft-text, #answer-text").filter(has_text="北京").first


def rows(page: Page) -> list[str]:
    """Return the numbers of the rows, as they stand."""
    return page.locator("#run-steps .no").all_inner_texts()


def test_steps_text_and_answer_appear_without_a_reload(browser, site):
    with person(browser, site) as context:
        page = begun(context, site, "steady")
        received = listen(page)
        page.evaluate("window.stayed = true")
        expect(page).to_have_title(re.compile(": Running"), timeout=LONG)
        expect(written(page)).to_be_visible(timeout=LONG)
        expect(page.locator("#run-step-2")).to_contain_text("weather_sample")
        page.wait_for_selector(OVER)

        expect(page.locator("#answer-text h1")).to_contain_text("北京")
        expect(page).to_have_title(re.compile(": Succeeded"))
        assert rows(page) == ["1", "2", "3"]
        assert page.evaluate("window.stayed") is True
        expect(page.locator("#run-live[hx-trigger]")).to_have_count(0)
        assert received == []


@pytest.mark.slow
def test_a_run_that_is_resumed_elsewhere_is_shown_anew(browser, site):
    number = site.run("-c", FAILED_RUN).strip()
    with person(browser, site) as context:
        page, listed = context.new_page(), context.new_page()
        page.goto(f"{site.url}/runs/{number}/")
        listed.goto(f"{site.url}/runs/")
        listed.click(f"#run-row-{number} .c-st")
        peek = listed.locator("#run-peek [data-status]").first
        expect(peek).to_have_attribute("data-status", "failed")
        expect(page).to_have_title(re.compile(": Failed"))

        site.run("-c", RESUMED_RUN.format(number=number))

        expect(peek).to_have_attribute("data-status", "succeeded", timeout=LONG)
        expect(page.locator(OVER)).to_be_visible(timeout=LONG)
        expect(page).to_have_title(re.compile(": Succeeded"))
        expect(page.locator("#answer-text")).to_contain_text("It is sunny.")


@pytest.mark.slow
def test_a_reload_in_the_middle_loses_and_doubles_nothing(browser, site):
    with person(browser, site) as context:
        page = begun(context, site, "steady")
        expect(written(page)).to_be_visible(timeout=LONG)
        page.reload()
        expect(written(page)).to_be_visible(timeout=LONG)
        page.wait_for_selector(OVER)

        assert rows(page) == ["1", "2", "3"]


@pytest.mark.slow
def test_two_browsers_see_the_same(browser, site):
    with person(browser, site) as one, person(browser, site) as other:
        page = begun(one, site, "brisk")
        twin = other.new_page()
        twin.goto(page.url)
        page.wait_for_selector(OVER)
        twin.wait_for_selector(OVER)

        assert rows(twin) == rows(page) == ["1", "2", "3"]
        answer = page.locator("#answer-text").inner_text()
        assert twin.locator("#answer-text").inner_text() == answer


@pytest.mark.slow
def test_the_end_of_what_the_model_writes_stays_in_sight(browser, site):
    with person(browser, site, viewport={"width": 1440, "height": 420}) as context:
        page = begun(context, site, "slow")
        pane = page.locator("#run-detail-scroll")
        wait_until(lambda: pane.evaluate("e => e.scrollTop") > 100, seconds=60)
        pane.hover()
        page.mouse.wheel(0, -5000)
        wait_until(lambda: pane.evaluate("e => e.scrollTop") == 0, seconds=30)
        most = pane.evaluate("e => e.scrollHeight") + 50
        wait_until(lambda: pane.evaluate("e => e.scrollHeight") > most, seconds=30)

        assert pane.evaluate("e => e.scrollTop") == 0
        stop(page)


GROW = """e => {
    const sheet = new CSSStyleSheet();  // the server replaces elements, not this
    const rule = "{ content: ''; display: block; height: 900px }";
    sheet.replaceSync("#draft-text::after " + rule);
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
    e.scrollTop = e.scrollHeight;
    sheet.cssRules[0].style.height = "1800px";  // before the event of this scrolling
}"""


@pytest.mark.slow
def test_text_that_arrives_while_the_pane_scrolls_is_followed(browser, site):
    with person(browser, site) as context:
        page = begun(context, site, "slow")
        expect(page.locator("#draft-text")).not_to_be_empty(timeout=30_000)
        pane = page.locator("#run-detail-scroll")
        pane.evaluate(GROW)

        wait_until(lambda: pane.evaluate("e => e.scrollTop") > 1000, seconds=30)
        stop(page)


def test_stop_is_acknowledged_and_ends_the_run(browser, site, record_property):
    with person(browser, site) as context:
        page = begun(context, site, "slow")
        expect(page.locator("#draft-text")).not_to_be_empty(timeout=30_000)
        began = time.monotonic()
        page.click("button:has-text('Stop')")
        page.wait_for_selector("button:has-text('Stopping'), [data-status=canceled]")
        record_property("seconds", time.monotonic() - began)
        page.wait_for_selector("#run-progress [data-status=canceled]")
        record_property("seconds to the end", time.monotonic() - began)


@pytest.mark.slow
def test_a_step_opens_beside_the_list_and_has_an_address(browser, site):
    with person(browser, site) as context:
        page = begun(context, site, "brisk")
        received = listen(page)
        page.wait_for_selector(OVER)
        page.click("#run-step-2 a")
        expect(page.locator("#run-detail h2").first).to_contain_text("weather_sample")
        page.click("#run-detail .tabs a:has-text('Prompt')")
        expect(page.locator("#run-detail")).to_contain_text("exactly what was sent")
        address = page.url
        page.reload()

        assert "step=2" in address
        assert "tab=prompt" in address
        expect(page.locator("#run-detail")).to_contain_text("exactly what was sent")
        expect(page.locator("#run-step-2 a")).to_have_attribute("aria-current", "true")
        assert received == []


@pytest.mark.slow
def test_keys_move_through_the_steps(browser, site):
    with person(browser, site) as context:
        page = begun(context, site, "brisk")
        page.wait_for_selector(OVER)
        page.keyboard.press("j")
        expect(page.locator("#run-detail h2").first).to_contain_text("Step 1")
        page.keyboard.press("j")
        expect(page.locator("#run-detail h2").first).to_contain_text("Step 2")
        page.keyboard.press("k")
        expect(page.locator("#run-detail h2").first).to_contain_text("Step 1")


@pytest.mark.slow
def test_a_run_can_be_read_without_a_script(browser, site):
    with person(browser, site, java_script_enabled=False) as context:
        page = begun(context, site, "brisk")
        page.wait_for_selector(OVER, timeout=LONG)  # the page reloads itself
        expect(page.locator("#answer-text h1")).to_contain_text("北京")
        page.click("#run-step-2 a")
        page.click("#run-detail .tabs a:has-text('Tool')")

        expect(page.locator("#run-tool")).to_contain_text("Idempotency key")


def test_a_run_can_be_stopped_without_a_script(browser, site):
    with person(browser, site, java_script_enabled=False) as context:
        page = begun(context, site, "slow")
        page.click("button:has-text('Stop')")

        page.wait_for_selector("#run-progress [data-status=canceled]", timeout=LONG)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.slow
def test_a_phone_shows_one_pane_at_a_time(browser, site, scheme):
    size = {"width": 390, "height": 844}
    with person(browser, site, viewport=size, color_scheme=scheme) as context:
        live = begun(context, site, "slow")
        expect(live.locator("#run-steps-pane")).to_be_visible()
        expect(live.locator("#run-detail")).to_be_hidden()
        stop(live)
        page = begun(context, site, "brisk")
        page.wait_for_selector(OVER)
        page.click(TO_STEPS)
        page.click("#run-step-2 a")

        expect(page.locator("#run-detail")).to_be_visible()
        expect(page.locator("#run-steps-pane")).to_be_hidden()
        assert overflow(page) == 0
        page.wait_for_url(re.compile("step=2"))
        page.go_back()

        expect(page.locator("#run-steps-pane")).to_be_visible()
        expect(page.locator("#run-detail")).to_be_hidden()


@pytest.mark.slow
def test_the_head_keeps_its_height_on_a_phone_when_the_run_ends(browser, site):
    with person(browser, site, viewport={"width": 390, "height": 844}) as context:
        page = begun(context, site, "brisk")
        head = page.locator("#run-header")
        before = head.bounding_box()["height"]
        page.wait_for_selector(OVER)

        assert head.bounding_box()["height"] == before


@pytest.mark.slow
def test_back_to_the_steps_is_not_lost_to_what_arrives_meanwhile(browser, site):
    with person(browser, site, viewport={"width": 390, "height": 844}) as context:
        page = begun(context, site, "brisk")
        page.wait_for_selector(OVER)
        page.click(TO_STEPS)
        page.click("#run-step-2 a")
        page.wait_for_url(re.compile("step=2"))
        expect(page.locator("#run-detail[data-step='2']")).to_be_visible()
        late: list[Route] = []
        page.route("**/*step=1", lambda route: late.append(route))
        target = "{target: '#run-detail', swap: 'outerMorph'}"
        page.evaluate(f"void htmx.ajax('GET', '?step=1', {target})")
        wait_until(lambda: late or page.wait_for_timeout(20))
        page.evaluate(RESTORED)
        page.evaluate("history.back()")
        page.wait_for_url(re.compile(r"/runs/\d+/$"))
        page.evaluate("window.restored")
        with suppress(PlaywrightError):  # its request has been aborted
            late[0].continue_()
        page.wait_for_timeout(1_000)

        expect(page.locator("#run-steps-pane")).to_be_visible()
        expect(page.locator("#run-detail")).to_be_hidden()


@pytest.mark.slow
def test_steps_of_called_agents_unfold_below_the_call_and_stay_open(browser, site):
    with person(browser, site) as context:
        page = begun(context, site, "Trip chooser")
        received = listen(page)
        page.click("#run-step-2 .nested summary")
        nested = page.locator("#run-step-2 .nested .step")
        expect(nested.first).to_contain_text("2.1", timeout=LONG)
        page.wait_for_selector(OVER, timeout=120_000)

        expect(nested).to_have_count(3, timeout=30_000)
        assert page.locator("#run-step-2 .nested").get_attribute("open") is not None
        assert rows(page)[0] == "1"
        page.keyboard.press("j")
        page.keyboard.press("j")
        page.keyboard.press("j")
        expect(page.locator("#run-detail h2").first).to_contain_text("Step 3")
        nested.last.click()
        page.wait_for_url(re.compile(r"/runs/\d+/\?step=3"))
        page.click("#run-above a")
        expect(page.locator("#run-detail h2").first).to_contain_text("Step 2")
        assert received == []
