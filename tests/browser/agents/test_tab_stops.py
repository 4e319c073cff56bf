"""The keyboard on the page that edits an agent: few Tab stops, and arrow keys."""

import pytest
from playwright.sync_api import expect

from tests.browser.driver.axe import violations
from tests.browser.driver.chromium import listen, seen_by
from tests.browser.driver.focus import tab_stops

pytestmark = pytest.mark.browser
MAX_STOPS = 60
TOOLS = "#agent-tool-table select"


@pytest.mark.parametrize("width", [1440, 1280, 390])
@pytest.mark.parametrize("asked", ["", "?try=prompt", "?try=side"])
@pytest.mark.slow
def test_the_page_of_an_agent_has_few_tab_stops(browser, lived_in, width, asked):
    context = browser.new_context(viewport={"width": width, "height": 900})
    page = seen_by(context, lived_in.url, "admin")
    page.goto(f"{lived_in.url}/agents/1/edit/{asked}")
    assert page.locator(TOOLS).count() == 7

    stops = tab_stops(page)

    assert 10 < len(stops) <= MAX_STOPS, "\n".join(stops)
    context.close()


@pytest.mark.slow
def test_more_tools_are_no_more_tab_stops(browser, lived_in):
    context = browser.new_context()
    page = seen_by(context, lived_in.url, "admin")
    page.goto(f"{lived_in.url}/agents/new/")
    page.click("[data-library]")
    menus = page.locator("#agent-library-table select:visible")
    expect(menus.first).to_be_visible()
    in_dialog = page.locator("#agent-library-table [tabindex='0']")
    expect(in_dialog).to_have_count(1)

    for number in range(9):
        menus.nth(number).select_option("allow")
    page.click("[data-close]")

    expect(page.locator(TOOLS)).to_have_count(9)
    expect(page.locator("#agent-tool-table [tabindex='0']")).to_have_count(1)
    assert len(tab_stops(page)) <= MAX_STOPS
    assert violations(page) == []
    context.close()


def test_arrow_keys_move_through_the_tools_and_change_nothing(browser, lived_in):
    context = browser.new_context()
    page = seen_by(context, lived_in.url, "admin")
    received = listen(page)
    page.goto(f"{lived_in.url}/agents/1/edit/")
    menus, links = page.locator(TOOLS), page.locator("#agent-tool-table a")
    before = page.eval_on_selector_all(TOOLS, "all => all.map((one) => one.value)")

    links.first.focus()
    page.keyboard.press("ArrowRight")
    expect(menus.first).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(menus.nth(1)).to_be_focused()
    page.keyboard.press("Control+End")
    expect(menus.last).to_be_focused()
    page.keyboard.press("Home")
    expect(links.last).to_be_focused()
    page.keyboard.press("Control+Home")
    expect(links.first).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(links.first).to_be_focused()

    after = page.eval_on_selector_all(TOOLS, "all => all.map((one) => one.value)")
    assert after == before
    page.keyboard.press("Tab")
    expect(page.locator("[data-library]")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    expect(links.first).to_be_focused()
    assert received == []
    context.close()


def test_enter_opens_the_menu_of_a_tool_and_the_arrow_keys_are_its_own(
    browser, lived_in
):
    context = browser.new_context()
    page = seen_by(context, lived_in.url, "admin")
    page.goto(f"{lived_in.url}/agents/2/edit/")
    page.click("[data-library]")
    menu = page.locator("#agent-library-table select:visible").first

    menu.focus()
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")

    expect(menu).not_to_have_value("off")
    expect(menu).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#agent-library")).to_be_hidden()
    context.close()


def test_the_parts_of_the_test_pane_are_a_toolbar(browser, lived_in):
    context = browser.new_context()
    page = seen_by(context, lived_in.url, "admin")
    page.goto(f"{lived_in.url}/agents/1/edit/")
    bar = page.get_by_role("toolbar", name="Test pane")

    bar.get_by_role("link", name="Test chat").focus()
    page.keyboard.press("ArrowRight")
    expect(bar.get_by_role("link", name="Exact prompt")).to_be_focused()
    page.keyboard.press("Enter")

    expect(page.locator("#agent-preview-body")).to_be_visible()
    expect(bar.locator("[tabindex='0']")).to_have_text("Exact prompt")
    context.close()


def test_without_script_every_tool_is_reached_with_tab(browser, lived_in):
    context = browser.new_context(java_script_enabled=False)
    page = seen_by(context, lived_in.url, "admin")
    page.goto(f"{lived_in.url}/agents/1/edit/")

    page.locator("#agent-tool-table a").first.focus()
    for number in range(7):
        page.keyboard.press("Tab")
        expect(page.locator(TOOLS).nth(number)).to_be_focused()
        page.keyboard.press("Tab")
    context.close()
