"""What is common to the pages: tabs, themes, keys, times, and lists."""

import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from playwright.sync_api import Route, expect

from tests.browser.driver.chromium import signed_in

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.mark.parametrize(
    ("path", "tab"),
    [
        pytest.param("/runs/?mine=1", "", id="of a page"),
        pytest.param("/runs/9002/?step=1", "tab=response", id="of a part"),
    ],
)
def test_the_chosen_tab_is_in_sight(browser, lived_in, path, tab):
    context = browser.new_context(viewport={"width": 320, "height": 844})
    page = signed_in(context, lived_in.url, "admin", "admin")

    page.goto(lived_in.url + path)
    if tab:
        page.locator(f".tabs [href*='{tab}']").evaluate("tab => tab.click()")
        page.wait_for_url(f"**{tab}")

    page.wait_for_function(CHOSEN_IS_IN_SIGHT)
    context.close()


CHOSEN_IS_IN_SIGHT = """() => {
    const row = document.querySelector(".tabs"), box = row.getBoundingClientRect();
    const tab = row.querySelector("[aria-current]").getBoundingClientRect();
    const end = box.right + 1;  // widths are fractions of pixels
    return row.scrollLeft > 0 && tab.left >= box.left && tab.right <= end;
}"""


def test_dark_is_dark_and_the_choice_stays(browser, lived_in):
    context = browser.new_context(color_scheme="light")
    page = signed_in(context, lived_in.url, "mara", "secret")
    page.goto(f"{lived_in.url}/")
    ground = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(ground)

    page.click("summary[title='Theme']")
    with page.expect_response("**/preferences/theme/"):
        page.click("button[value=dark]")
    at_once = page.evaluate(ground)
    page.reload()

    assert before != at_once
    assert page.evaluate(ground) == at_once
    assert page.get_attribute("html", "data-theme") == "dark"
    context.close()


def test_the_theme_can_be_chosen_without_a_script(browser, lived_in):
    context = browser.new_context(java_script_enabled=False)
    page = signed_in(context, lived_in.url, "mara", "secret")
    page.goto(f"{lived_in.url}/")

    page.click("summary[title='Theme']")
    page.click("button[value=light]")

    assert page.get_attribute("html", "data-theme") == "light"
    context.close()


def test_a_slash_leads_to_the_search(browser, lived_in):
    context = browser.new_context()
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(f"{lived_in.url}/")

    page.keyboard.press("/")
    page.keyboard.type("payouts")
    page.get_by_role("option", name="all runs for “payouts”").wait_for()
    page.keyboard.press("ArrowUp")  # from the first result to the last
    page.keyboard.press("Enter")

    page.wait_for_url("**/runs/?q=payouts&tests=with")
    assert page.locator("#run-list tbody tr").count() > 0
    context.close()


def test_times_are_in_the_viewers_zone(browser, lived_in):
    context = browser.new_context(timezone_id="Asia/Shanghai")
    page = signed_in(context, lived_in.url, "admin", "admin")

    page.goto(f"{lived_in.url}/runs/?status=succeeded")
    time = page.locator("#run-list time").first

    utc = page.evaluate(
        "e => new Date(e.dateTime).getUTCHours()", time.element_handle()
    )
    assert f" {(utc + 8) % 24:02}:" in (time.get_attribute("title") or "")
    page.goto(f"{lived_in.url}/workers/")
    bar = page.locator("#worker-wait title[data-clock]").first
    at = datetime.fromisoformat(bar.get_attribute("data-clock") or "")
    hour = (at.astimezone(UTC).hour + 8) % 24
    expect(bar).to_have_text(re.compile(rf"^{hour:02}:\d\d: \d"))
    context.close()


@pytest.mark.parametrize(
    ("status", "offered"),
    [
        pytest.param("succeeded", {"stop": False, "delete": True}, id="over"),
        pytest.param("unfinished", {"stop": True, "delete": False}, id="unfinished"),
    ],
)
def test_the_selected_runs_are_offered_what_can_be_done(
    browser, lived_in, status, offered
):
    context = browser.new_context()
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(f"{lived_in.url}/runs/?status={status}")

    page.locator("#run-selection td.sel input").first.check()
    page.click("#run-more summary")

    buttons = {do: page.locator(f".bulk [value={do}]") for do in offered}
    assert {do: button.is_visible() for do, button in buttons.items()} == offered
    assert page.locator(".bulk > [value=again]").is_visible()
    context.close()


TOPS = """() => {
    const boxes = [...document.querySelectorAll("#run-selection td.sel input")];
    return boxes.map((box) => {
        let top = box.getBoundingClientRect().top;  // a click may have scrolled to it
        for (let part = box; part; part = part.parentElement) top += part.scrollTop;
        return Math.round(top);
    });
}"""


@pytest.mark.parametrize("width", [1440, 390])
def test_a_chosen_run_stays_where_it_was(browser, lived_in, width):
    context = browser.new_context(viewport={"width": width, "height": 900})
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(f"{lived_in.url}/runs/?status=succeeded")
    before = page.evaluate(TOPS)

    page.locator("#run-selection td.sel input").first.check()

    assert page.locator(".bulk").is_visible()
    assert page.evaluate(TOPS) == before
    context.close()


def test_the_seed_is_a_true_list(browser, lived_in):
    context = browser.new_context()
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(f"{lived_in.url}/runs/")

    cells = page.locator("#run-selection td.c-t time").all()
    begun = [datetime.fromisoformat(cell.get_attribute("datetime")) for cell in cells]

    late = [(a, b) for a, b in pairwise(begun) if b - a > timedelta(minutes=5)]
    assert late == []
    context.close()


def test_escape_closes_a_menu_and_returns_to_its_button(browser, lived_in):
    context = browser.new_context()
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(f"{lived_in.url}/")

    page.click(".account > summary")
    page.keyboard.press("Tab")
    page.keyboard.press("Escape")

    expect(page.locator(".account > div")).to_be_hidden()
    assert page.evaluate("document.activeElement.className") == "avatar"
    context.close()


def test_a_skip_link_leads_to_the_tools_of_the_administration(browser, lived_in):
    context = browser.new_context()
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(f"{lived_in.url}/admin/tools/tool/")

    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.locator("a.skip:focus")).to_have_text("Skip to results")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")

    assert page.evaluate("document.activeElement.closest('#result_list') !== null")
    context.close()


@pytest.mark.parametrize("width", [390, 1100, 1440])
def test_the_menu_of_templates_is_not_cut(browser, lived_in, width):
    context = browser.new_context(viewport={"width": width, "height": 900})
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(f"{lived_in.url}/agents/new/")

    page.click("#agent-beginnings > summary")
    menu = page.locator("#agent-beginnings > div").bounding_box()
    pane = page.locator("#agent-form").bounding_box()

    assert menu["x"] >= pane["x"]
    assert menu["x"] + menu["width"] <= pane["x"] + pane["width"]
    context.close()


def test_on_a_phone_a_call_is_approved_without_scrolling(browser, lived_in):
    context = browser.new_context(viewport={"width": 390, "height": 844})
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(f"{lived_in.url}/approvals/")
    run = page.locator("a:has-text('Open run'), #approval-detail a[href^='/runs/']")
    page.goto(lived_in.url + run.first.get_attribute("href"))

    button = page.locator("#run-banner button[value=approve]").first.bounding_box()
    bar = page.locator(".tabbar").bounding_box()

    assert button["y"] + button["height"] <= bar["y"]
    context.close()


def test_the_figures_of_home_are_updated_every_minute(browser, lived_in):
    context = browser.new_context()
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.clock.install()
    page.goto(f"{lived_in.url}/?range=30d")
    figure = page.locator("#home-figures b").first
    expect(figure).not_to_have_text("4,321")

    def answer(route: Route) -> None:
        body = route.fetch().text()
        begin = body.index("<b>", body.index('id="home-figures"'))
        end = body.index("</b>", begin)
        route.fulfill(body=f"{body[:begin]}<b>4,321{body[end:]}")

    page.route("**/?range=30d", answer)
    page.clock.run_for(61_000)

    expect(figure).to_have_text("4,321")
    expect(page.locator("#home-period")).to_have_count(1)
    expect(page.locator(".board > #home-runs")).to_be_visible()
    context.close()


def test_a_success_message_leaves_after_a_while(browser, lived_in):
    context = browser.new_context()
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.clock.install()
    page.goto(f"{lived_in.url}/webhooks/new/")
    page.fill("[name=name]", "short-lived")
    page.fill("[name=url]", "https://hooks.example/x")
    page.click("#webhook-form button:has-text('Save')")
    message = page.locator("#part-toasts .toast")
    expect(message).to_be_visible()

    page.clock.run_for(11_000)

    expect(message).to_have_count(0)
    context.close()


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("path", ["/", "/usage/"])
def test_a_period_is_picked_by_dates_that_are_seen(browser, lived_in, path, width):
    context = browser.new_context(viewport={"width": width, "height": 900})
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(lived_in.url + path)
    page.click("#part-period summary")

    for name in ("begin", "end"):
        field = page.locator(f"#part-period [name={name}]")
        box = field.bounding_box()
        assert box is not None
        assert box["width"] > 100
        assert 0 <= box["x"] <= width - box["width"]
        expect(field).to_have_css("opacity", "1")
    page.fill("#part-period [name=begin]", "2026-11-02")
    page.fill("#part-period [name=end]", "2026-11-05")
    page.click("#part-period button")

    expect(page).to_have_url(re.compile("begin=2026-11-02&end=2026-11-05"))
    context.close()
