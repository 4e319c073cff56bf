"""Reading a run in Chromium: following, filters, search, keys, accessibility."""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from playwright.sync_api import Browser, Page, Route, expect
from playwright.sync_api import Error as PlaywrightError

from runs.ui.format import duration, tick
from runs.ui.time_scale import TICK_INTERVALS
from tests.browser.driver.axe import violations
from tests.browser.driver.chromium import listen, signed_in
from tests.browser.seed.runs import BIG, BUSY, DONE, FAILED, LIVE, RUNNING
from tests.browser.shots import PAGES
from tests.browser.site import Site
from tests.support.timing import wait_until

pytestmark = pytest.mark.browser

DROP_STREAM = r"document.querySelector('[hx-sse\\:connect]')._htmx.sse.reader.cancel()"
STREAM_IS_OPEN = r"""() =>
    document.querySelector('[hx-sse\\:connect]')._htmx?.sse?.reader
"""
A_MOMENT_AGO = """() => {
    const time = document.createElement("time");
    time.id = "moment";
    time.dataset.style = "ago";
    time.dateTime = new Date(Date.now() - 2000).toISOString();
    document.body.append(time);
}"""

COUNT_STREAMS = """() => {
    window.streams = 0;
    const count = () => { window.streams += 1; };
    document.addEventListener("htmx:sse:after:connection", count);
}"""

HEAR = """(button) => {
    button.said = [];  // the words that it shows, also those of a moment
    const hear = () => button.said.push(button.textContent);
    const changes = { childList: true, subtree: true, characterData: true };
    new MutationObserver(hear).observe(button, changes);
}"""
SAID = "(button) => button.said.join()"

AXIS_LABELS = """(words) => {
    const labels = [...document.querySelectorAll(".steps-head .axis span")];
    labels.forEach((label, place) => { label.textContent = words[place]; });
    const boxes = labels.filter((label) => label.checkVisibility()).map((label) => {
        const range = document.createRange();
        range.selectNodeContents(label);
        return [...range.getClientRects()];
    });
    const end = labels[0].parentElement.getBoundingClientRect().right;
    return boxes.every((lines, place) => lines.length === 1
        && lines[0].right < (boxes[place + 1]?.[0].left ?? end));
}"""


@contextmanager
def opened(
    browser: Browser, site: Site, path: str, **options: object
) -> Iterator[Page]:
    """Show a page of the site to its admin."""
    context = browser.new_context(**options)
    context.set_default_timeout(30_000)
    page = signed_in(context, site.url, "admin", "admin")
    page.goto(f"{site.url}{path}")
    yield page
    context.close()


def push(site: Site, run: int, what: str, count: int = 1) -> None:
    """Commit something to a run, from another process."""
    site.run("-m", "tests.browser.driver.push", str(run), what, str(count))


def numbers(page: Page) -> list[int]:
    """Return the numbers of the rows that are shown."""
    return [int(text) for text in page.locator("#run-steps .no").all_inner_texts()]


def place_of(page: Page, number: int) -> float:
    """Return how far from the window's top a row is."""
    box = page.locator(f"#run-step-{number}").bounding_box()
    assert box is not None
    return box["y"]


@pytest.mark.slow
def test_the_view_follows_until_the_person_scrolls(browser, lived_in):
    with opened(browser, lived_in, f"/runs/{LIVE}/") as page:
        last = numbers(page)[-1]
        expect(page.locator(f"#run-step-{last}")).to_be_in_viewport()
        push(lived_in, LIVE, "rounds", 3)
        expect(page.locator(f"#run-step-{last + 6}")).to_be_in_viewport(timeout=30_000)

        page.locator("#run-steps-pane").hover()
        page.mouse.wheel(0, -900)
        expect(page.locator(f"#run-step-{last + 6}")).not_to_be_in_viewport()
        before = place_of(page, last - 40)
        push(lived_in, LIVE, "rounds", 2)
        expect(page.locator("#run-below")).to_have_text(
            "4 new steps below", timeout=30_000
        )
        assert place_of(page, last - 40) == before

        page.click("#run-below")
        expect(page.locator(f"#run-step-{last + 10}")).to_be_in_viewport()
        expect(page.locator("#run-below")).to_be_hidden()


@pytest.mark.slow
def test_a_live_run_of_many_steps_keeps_the_newest_and_a_link(browser, lived_in):
    with opened(browser, lived_in, f"/runs/{LIVE}/") as page:
        last = numbers(page)[-1]
        push(lived_in, LIVE, "rounds", 120)
        row = page.locator(f"#run-step-{last + 240}")
        expect(row).to_be_in_viewport(timeout=60_000)

        kept = numbers(page)
        assert len(kept) <= 300
        assert kept == list(range(kept[0], last + 241))
        link = page.locator("#run-earlier a")
        expect(link).to_contain_text(f"{kept[0] - 1:,} earlier steps")
        link.click()
        expect(page.locator(f"#run-step-{kept[0] - 100}")).to_be_attached()
        assert numbers(page) == list(range(kept[0] - 100, last + 241))


@pytest.mark.slow
def test_the_chosen_step_and_what_a_search_marks_follow_a_change(browser, lived_in):
    with opened(browser, lived_in, f"/runs/{BUSY}/?step=2&q=sun") as page:
        pane = page.locator("#run-detail")
        expect(pane).to_contain_text("No result yet.")
        push(lived_in, BUSY, "outcome")

        expect(pane).to_contain_text("It was found at last.", timeout=30_000)
        expect(page.locator("#run-step-2")).to_contain_text("It was found at last.")
        expect(page.locator("#run-step-2 mark")).to_have_text("sun")


@pytest.mark.slow
def test_filters_and_search_leave_rows_and_stay_in_the_address(browser, lived_in):
    with opened(browser, lived_in, f"/runs/{DONE}/") as page:
        received = listen(page)
        page.fill("#run-search", "颐和园")
        expect(page.locator("#run-step-1")).to_have_count(0)
        assert numbers(page) == [5, 6, 9, 10, 11, 12, 13, 15]
        expect(page.locator("#run-search")).to_be_focused()
        expect(page.locator("#run-found")).to_have_text("8 of 15 steps")

        page.click("#run-filters a:has-text('Tools')")
        expect(page.locator("#run-step-5")).to_have_count(0)
        page.click("#run-step-10 a")
        expect(page.locator("#run-detail h2").first).to_contain_text("Step 10")
        page.reload()

        assert numbers(page) == [6, 10, 12, 13]
        assert "step=10" in page.url
        expect(page.locator("#run-step-10 a")).to_have_attribute("aria-current", "true")
        assert received == []


def test_the_timeline_is_one_key_away(browser, lived_in):
    with opened(browser, lived_in, f"/runs/{DONE}/") as page:
        expect(page.locator("#run-times")).to_be_hidden()
        page.keyboard.press("t")
        expect(page.locator("#run-times")).to_contain_text("Model")
        page.wait_for_url(re.compile("as=time"))
        page.keyboard.press("t")
        expect(page.locator("#run-times")).to_be_hidden()


@pytest.mark.slow
def test_keys_lead_to_errors_search_tabs_and_the_list_of_keys(browser, lived_in):
    with opened(browser, lived_in, f"/runs/{FAILED}/?step=1") as page:
        title = page.locator("#run-detail h2").first
        page.keyboard.press("e")
        expect(title).to_contain_text("Step 5 · run_sql")
        page.keyboard.press("e")
        expect(title).to_contain_text("Step 8 · model call, failed")
        page.keyboard.press("2")
        expect(page.locator("#run-prompt")).to_contain_text("Built from the record")
        page.keyboard.press("e")
        page.wait_for_url(re.compile("step=5"))
        page.keyboard.press("/")
        expect(page.locator("#run-search")).to_be_focused()
        page.keyboard.press("Escape")
        page.keyboard.press("?")
        expect(page.locator("#search-shortcuts")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator("#search-shortcuts")).to_be_hidden()


@pytest.mark.slow
def test_the_key_of_forks_works_where_no_step_is_chosen(browser, lived_in):
    with opened(browser, lived_in, f"/runs/{DONE}/") as page:
        page.keyboard.press("f")
        expect(page.locator("h1")).to_have_text("Fork at step 15")
        page.goto(f"{lived_in.url}{PAGES['run-away']}")
        page.keyboard.press("f")
        expect(page.locator("h1")).to_have_text("Continue after the last step")


def test_up_from_what_the_model_writes_now_is_the_newest_step(browser, lived_in):
    with opened(browser, lived_in, f"/runs/{LIVE}/") as page:
        last = numbers(page)[-1]
        page.keyboard.press("k")
        page.wait_for_url(re.compile(f"step={last}$"))


def test_a_held_key_passes_many_steps_and_opens_the_last(browser, lived_in):
    with opened(browser, lived_in, f"/runs/{DONE}/?step=1") as page:
        for _ in range(11):
            page.keyboard.press("j")
        expect(page.locator("#run-detail h2").first).to_contain_text("Step 12")
        expect(page.locator("#run-step-12 a")).to_have_attribute("aria-current", "true")
        page.go_back()
        expect(page.locator("#run-detail h2").first).not_to_contain_text("Step 12")


@pytest.mark.slow
def test_a_step_opens_though_the_stream_replaced_its_pane(browser, lived_in):
    with opened(browser, lived_in, f"/runs/{LIVE}/") as page:
        last, held = numbers(page)[-1], hold_steps(page)
        page.locator(f"#run-step-{last} > .step").click()
        wait_until(lambda: held or page.wait_for_timeout(20))
        page.locator("#run-detail").evaluate("e => { e.isOld = true; }")
        push(lived_in, LIVE, "rounds")
        page.wait_for_function("() => !document.querySelector('#run-detail').isOld")
        held[0].continue_()

        expect(page.locator("#run-detail")).to_have_attribute("data-step", str(last))
        page.wait_for_url(re.compile(f"step={last}$"))


def test_the_step_chosen_last_opens_though_another_was_still_loading(browser, lived_in):
    with opened(browser, lived_in, f"/runs/{DONE}/?step=1") as page:
        held = hold_steps(page)
        for count in (1, 2):
            page.keyboard.press("j")
            wait_until(
                lambda count=count: len(held) == count or page.wait_for_timeout(20)
            )
        held[0].continue_()
        page.wait_for_timeout(1_000)  # its answer comes first
        held[1].continue_()

        expect(page.locator("#run-detail h2").first).to_contain_text("Step 3")
        page.wait_for_url(re.compile("step=3$"))


def test_back_is_not_undone_by_a_step_that_was_still_loading(browser, lived_in):
    with opened(browser, lived_in, f"/runs/{DONE}/?step=1") as page:
        title = page.locator("#run-detail h2").first
        page.keyboard.press("j")
        expect(title).to_contain_text("Step 2")
        held = hold_steps(page)
        page.keyboard.press("j")
        wait_until(lambda: held or page.wait_for_timeout(20))
        slow = held.pop()

        page.evaluate("history.back()")
        wait_until(lambda: held or page.wait_for_timeout(20))
        held[0].continue_()  # the page that Back leads to
        expect(title).to_contain_text("Step 1")
        with suppress(PlaywrightError):  # its request has been aborted
            slow.continue_()
        page.wait_for_timeout(1_000)

        expect(title).to_contain_text("Step 1")
        assert page.url.endswith("step=1")


def hold_steps(page: Page) -> list[Route]:
    """Return a list that fills with requests for steps, which a test lets go on."""
    held: list[Route] = []
    page.route(re.compile(r"\?step=\d+$"), lambda route: held.append(route))
    return held


def test_a_phone_shows_the_beginning_of_the_step_that_is_touched(browser, lived_in):
    size = {"width": 390, "height": 844}
    path = f"/runs/{BIG}/?view=steps"
    with opened(browser, lived_in, path, viewport=size, has_touch=True) as page:
        page.locator("#run-step-80 a").tap()

        expect(page.locator("#run-detail h2").first).to_contain_text("Step 80")
        expect(page.locator("#run-detail h2").first).to_be_in_viewport()
        expect(page.locator("#run-steps-pane")).to_be_hidden()


def test_a_phone_tells_limits_and_worker_where_one_asks(browser, lived_in):
    size = {"width": 390, "height": 844}
    with opened(browser, lived_in, f"/runs/{DONE}/", viewport=size) as page:
        most = page.locator("#run-facts small:text-is('of 60,000')")
        expect(most).to_be_hidden()
        page.click("#run-more-facts summary")
        expect(most).to_be_visible()
        assert most.evaluate("e => e.scrollWidth <= e.clientWidth")
        expect(page.locator("#run-facts a:text-is('w2')")).to_be_visible()


@pytest.mark.slow
def test_clocks_count_on_between_two_messages(browser, lived_in):
    with opened(browser, lived_in, f"/runs/{BUSY}/") as page:
        clock = page.locator("#run-whole [data-clock]")
        shown = clock.inner_text()
        expect(clock).not_to_have_text(shown)
        page.evaluate(A_MOMENT_AGO)
        moment = page.locator("#moment")
        expect(moment).to_have_text(re.compile("[3-9] s ago"), timeout=30_000)
        shown = moment.inner_text()
        expect(moment).not_to_have_text(shown, timeout=30_000)


def test_clocks_round_as_the_server_does(browser, lived_in):
    with opened(browser, lived_in, f"/runs/{BUSY}/") as page:
        page.evaluate(
            "document.querySelector('main')"
            ".insertAdjacentHTML('beforeend', '<b id=long data-clock=7000></b>')"
        )

        expect(page.locator("#long")).to_have_text(duration(7000))


@pytest.mark.parametrize("path", [f"/runs/{LIVE}/", "/agents/"])
@pytest.mark.slow
def test_a_stream_that_begins_late_is_opened_once(browser, lived_in, path):
    with opened(browser, lived_in, "/") as page:
        asked: list[Route] = []
        page.route("**/live/**", lambda route: asked.append(route))
        page.goto(f"{lived_in.url}{path}")
        page.evaluate(COUNT_STREAMS)
        wait_until(lambda: asked or page.wait_for_timeout(20))
        page.wait_for_timeout(3_000)  # a page without a stream connects after 2 s
        asked[0].continue_()
        page.wait_for_function("() => window.streams > 0")
        page.wait_for_timeout(1_000)

        assert len(asked) == 1


@pytest.mark.parametrize("path", [f"/runs/{LIVE}/", "/", "/runs/", "/chat/"])
@pytest.mark.slow
def test_a_page_whose_session_ended_says_so(browser, lived_in, path):
    with opened(browser, lived_in, path) as page:
        other = page.context.new_page()
        other.goto(f"{lived_in.url}/")
        other.click("summary.avatar")
        other.click("button:has-text('Sign out')")
        page.bring_to_front()

        note = page.locator("#part-lost")
        expect(note.locator("a")).to_be_visible(timeout=90_000)
        expect(note).to_contain_text("you were signed out")


@pytest.mark.parametrize("path", [f"/runs/{LIVE}/", "/", "/runs/", "/chat/"])
@pytest.mark.slow
def test_a_page_without_a_connection_says_so_until_it_is_back(browser, lived_in, path):
    with opened(browser, lived_in, path) as page:
        page.wait_for_function(STREAM_IS_OPEN)
        page.context.set_offline(True)
        page.route("**/*", lambda route: route.abort())
        page.evaluate(DROP_STREAM)

        shows_lost_connection_until_it_is_back(page)


@pytest.mark.parametrize("path", [f"/runs/{LIVE}/", "/runs/"])
@pytest.mark.slow
def test_a_page_that_never_had_a_connection_says_so(browser, lived_in, path):
    with opened(browser, lived_in, "/agents/") as page:
        page.route("**/live/**", lambda route: route.abort())
        page.goto(f"{lived_in.url}{path}")

        shows_lost_connection_until_it_is_back(page)


@pytest.mark.parametrize(
    ("status", "text"), [(503, "Connection lost"), (403, "you were signed out")]
)
@pytest.mark.slow
def test_a_page_whose_stream_is_refused_says_so(browser, lived_in, status, text):
    with opened(browser, lived_in, "/agents/") as page:
        page.route("**/live/**", lambda route: route.fulfill(status=status))
        page.goto(f"{lived_in.url}/runs/")

        note = page.locator("#part-lost")
        expect(note).to_contain_text(text, timeout=60_000)
        with page.expect_response(lambda one: "/runs/" in one.url and one.ok):
            pass  # the list is still loaded every 3 s
        page.wait_for_timeout(500)
        assert text in note.inner_text()


def shows_lost_connection_until_it_is_back(page: Page) -> None:
    note = page.locator("#part-lost")
    expect(note).to_contain_text("Connection lost", timeout=60_000)
    expect(note.locator("a")).to_have_count(0)
    page.unroute_all()
    page.context.set_offline(False)
    expect(note).to_be_empty(timeout=90_000)


def test_a_filter_chosen_after_the_session_ended_leads_to_sign_in(browser, lived_in):
    with opened(browser, lived_in, "/runs/") as page:
        page.locator("#run-facet-status input").first.wait_for(state="attached")
        page.context.clear_cookies()
        page.locator("#run-facet-status .fopt").first.click()

        page.wait_for_url(re.compile("/sign-in/.*next=%2Fruns%2F"))


def test_steps_are_filtered_and_searched_without_a_script(browser, lived_in):
    with opened(browser, lived_in, f"/runs/{DONE}/", java_script_enabled=False) as page:
        page.fill("#run-search", "颐和园")
        page.press("#run-search", "Enter")
        assert 1 not in numbers(page)
        page.click("#run-filters a:has-text('Errors')")
        expect(page.locator("#run-steps-pane")).to_contain_text("No step")
        page.click("a:has-text('Show all steps')")
        page.click("#run-next-error")
        expect(page.locator("#run-detail h2").first).to_contain_text("Step 8")
        page.goto(f"{lived_in.url}/runs/{RUNNING}/")
        expect(page.locator("article.draft")).to_be_hidden()
        expect(page.locator("#run-detail .tag")).to_be_hidden()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.slow
def test_axe_finds_no_fault_after_a_click_or_a_key(browser, lived_in, theme):
    with opened(browser, lived_in, f"/runs/{DONE}/", color_scheme=theme) as page:
        found = {}
        page.click("#run-actions summary:visible")
        covers = "target-size"  # an open menu covers parts of what is below it
        found["menu"] = [one for one in violations(page) if covers not in one]
        page.keyboard.press("Escape")
        page.keyboard.press("?")
        found["keys"] = violations(page)
        page.goto(f"{lived_in.url}/runs/{DONE}/?step=5&tab=prompt")
        for fold in page.locator("#run-detail details").all():
            fold.evaluate("it => { it.open = true; }")
        expect(page.locator("#run-prompt pre[tabindex]").first).to_be_visible()
        found["prompt"] = violations(page)
        for name in ("search", "long", "approval"):
            page.goto(f"{lived_in.url}{PAGES[f'run-{name}']}")
            page.keyboard.press("a" if name == "approval" else "h")
            found[name] = violations(page)
        page.goto(f"{lived_in.url}/runs/{DONE}/?q=nothing-fits-this")
        found["no hit"] = violations(page)

    assert {name: faults for name, faults in found.items() if faults} == {}


def test_the_keyboard_reaches_what_needs_a_person_at_once(browser, lived_in):
    with opened(browser, lived_in, PAGES["run-approval"]) as page:
        approve = page.locator("#run-need button:has-text('Approve')")
        page.keyboard.press("a")
        expect(approve).to_be_focused()

        page.reload()
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        for _ in range(4):
            page.keyboard.press("Tab")
        expect(approve).to_be_focused()


@pytest.mark.slow
def test_the_keys_go_from_hit_to_hit_through_the_steps(browser, lived_in):
    with opened(browser, lived_in, f"/runs/{DONE}/") as page:
        received = listen(page)
        page.fill("#run-search", "颐和园")
        marks = page.locator("#run-steps mark")
        expect(page.locator("#run-step-1")).to_have_count(0)
        expect(marks.first).to_have_text("颐和园")
        expect(page.locator("#run-detail mark").first).to_be_visible()

        page.locator("#run-search").blur()
        page.keyboard.press("h")
        expect(page.locator("mark[data-now]")).to_be_in_viewport()
        page.click("#run-step-6 a")
        title = page.locator("#run-detail h2").first
        expect(title).to_contain_text("Step 6")
        page.click("#run-detail .tabs a:has-text('Tool')")
        expect(page.locator("#run-tool mark")).to_have_text("颐和园")
        page.keyboard.press("h")
        expect(page.locator("#run-tool mark[data-now]")).to_be_in_viewport()
        page.keyboard.press("h")
        expect(title).to_contain_text("Step 9")
        expect(page.locator("#run-detail mark[data-now]")).to_be_in_viewport()
        page.keyboard.press("H")
        expect(title).to_contain_text("Step 6")
        assert "step=6" in page.url
        assert received == []


def test_hits_are_marked_without_a_script(browser, lived_in):
    with opened(browser, lived_in, f"/runs/{DONE}/", java_script_enabled=False) as page:
        page.fill("#run-search", "颐和园")
        page.press("#run-search", "Enter")
        page.click("#run-step-10 a")
        expect(page.locator("#run-step-10 mark").first).to_have_text("颐和园")
        expect(page.locator("#run-detail mark").first).to_have_text("颐和园")


@pytest.mark.slow
def test_a_copy_button_gives_the_exact_text(browser, lived_in):
    may = ["clipboard-read", "clipboard-write"]
    with opened(browser, lived_in, f"/runs/{DONE}/?step=5", permissions=may) as page:
        received = listen(page)
        buttons = {
            tab: page.locator(f"#run-{part} [data-copy-url]").first
            for tab, part in (
                ("readable", "readable"),
                ("prompt", "prompt"),
                ("request", "raw"),
                ("response", "raw"),
            )
        }
        for tab, button in buttons.items():
            page.goto(f"{lived_in.url}/runs/{DONE}/?step=5&tab={tab}")
            for details in page.locator("#run-detail details").all():
                details.evaluate("it => { it.open = true; }")
            button.evaluate(HEAR)
            button.click()
            wait_until(
                lambda button=button: (
                    "Copied" in button.evaluate(SAID) or page.wait_for_timeout(50)
                )
            )
            copied = page.evaluate("() => navigator.clipboard.readText()")
            address = button.get_attribute("data-copy-url")
            assert copied == page.request.get(f"{lived_in.url}{address}").text()
            assert copied
        assert received == []


@pytest.mark.parametrize("width", [1280, 1440, 1920])
def test_labels_of_the_time_axis_do_not_overlap(browser, lived_in, width):
    size = {"width": width, "height": 900}
    with opened(browser, lived_in, f"/runs/{DONE}/", viewport=size) as page:
        for interval in TICK_INTERVALS:
            words = ["0", *(tick(interval * line) for line in (1, 2, 3))]
            assert page.evaluate(AXIS_LABELS, words), words


def steps_width(page: Page) -> float:
    box = page.locator("#run-steps-pane").bounding_box()
    assert box is not None
    return box["width"]


def test_the_border_between_the_panes_is_moved_and_stays(browser, lived_in):
    window = {"viewport": {"width": 1440, "height": 900}}
    with opened(browser, lived_in, f"/runs/{DONE}/", **window) as page:
        border, first = page.get_by_role("separator"), steps_width(page)
        box = border.bounding_box()
        page.mouse.move(box["x"] + 4, box["y"] + 200)
        page.mouse.down()
        page.mouse.move(box["x"] - 200, box["y"] + 200, steps=4)
        page.mouse.up()
        dragged = steps_width(page)

        assert first - 220 < dragged < first - 180
        expect(border).to_be_focused()
        percent = int(border.get_attribute("aria-valuenow"))
        page.keyboard.press("ArrowRight")
        expect(border).to_have_attribute("aria-valuenow", str(percent + 2))
        assert steps_width(page) > dragged
        page.keyboard.press("Home")
        expect(border).to_have_attribute("aria-valuenow", "30")
        narrow = steps_width(page)
        page.reload()

        expect(border).to_have_attribute("aria-valuenow", "30")
        assert steps_width(page) == narrow < dragged


def test_brackets_lead_through_the_runs_of_the_filtered_list(browser, lived_in):
    with opened(browser, lived_in, "/runs/?status=failed") as page:
        rows = page.locator("#run-selection tbody tr")
        boxes = rows.locator("td.sel input")
        first, second = (boxes.nth(place).get_attribute("value") for place in (0, 1))
        rows.first.locator("a").first.click()
        page.wait_for_url(f"**/runs/{first}/**")

        page.keyboard.press("]")
        page.wait_for_url(f"**/runs/{second}/**")
        page.keyboard.press("[")

        page.wait_for_url(f"**/runs/{first}/**")


def test_the_focus_stays_where_feedback_was_given(browser, lived_in):
    with opened(browser, lived_in, f"/runs/{DONE}/?step=0") as page:

        def expect_focus(selector: str) -> None:
            expect(page.locator(selector)).to_be_focused()

        page.focus("#run-rate-good")
        page.keyboard.press("Enter")
        expect(page.locator("#run-rate-good[aria-pressed=true]")).to_be_focused()

        page.focus("#run-tag-new")
        page.keyboard.type("focus")
        page.keyboard.press("Enter")
        remove = page.locator(".remove-tag[value=focus]")
        expect(remove).to_be_visible()
        expect_focus("#run-tag-new")
        assert page.input_value("#run-tag-new") == ""
        remove.focus()
        page.keyboard.press("Enter")
        expect(remove).to_be_hidden()
        expect_focus("#run-feedback")

        page.click("#run-feedback summary:has-text('Comments')")
        page.focus("#run-comment-text")
        page.keyboard.type("Read.")
        page.focus("#run-comment-add")
        page.keyboard.press("Enter")
        expect(page.locator("#run-feedback article")).to_contain_text("Read.")
        expect_focus("#run-comment-add")
        assert page.input_value("#run-comment-text") == ""


def test_a_comment_that_was_not_sent_is_still_there(browser, lived_in):
    context = browser.new_context()
    page = signed_in(context, lived_in.url, "admin", "admin")
    comment = page.locator("#run-comment-text")
    page.goto(f"{lived_in.url}/runs/9006/?step=0")
    page.click("summary:has-text('Comments')")
    comment.fill("half typed")
    page.goto(f"{lived_in.url}/runs/9003/?step=0")
    expect(comment).to_have_value("")

    page.goto(f"{lived_in.url}/runs/9006/?step=0")

    expect(comment).to_be_visible()
    expect(comment).to_have_value("half typed")
    comment.fill("")
    page.reload()
    expect(page.locator("#run-feedback")).to_be_visible()
    expect(comment).to_have_value("")
    context.close()


def test_k_goes_up_to_rows_that_are_not_loaded_yet(browser, lived_in):
    with opened(browser, lived_in, f"/runs/{BIG}/?step=1000") as page:
        rows = page.locator("#run-steps-pane .step")
        count = rows.count()
        for _ in range(60):
            page.keyboard.press("k")
        wait_until(lambda: rows.count() > count)
        page.keyboard.press("k")
        page.wait_for_timeout(300)

        chosen = page.locator("#run-steps-pane .step[aria-current=true]")
        step = re.search(r"step=(\d+)", chosen.get_attribute("href") or "")
        assert step is not None
        assert 800 < int(step[1]) < 960
