"""The palette, the jumps and the shortcuts, by keyboard alone."""

import pytest
from playwright.sync_api import expect

from tests.browser.driver.axe import violations
from tests.browser.driver.chromium import listen, signed_in

pytestmark = pytest.mark.browser


def test_everything_is_a_few_keys_away(browser, lived_in):
    context = browser.new_context()
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(f"{lived_in.url}/")
    received = listen(page)

    page.keyboard.press("Control+k")
    field = page.get_by_role("combobox")
    expect(field).to_be_focused()
    expect(page.get_by_role("option", selected=True)).to_contain_text("Home")
    page.keyboard.type("travel-pla")
    page.get_by_role("option", name="all runs for “travel-pla”").wait_for()
    expect(page.locator("#palette [role=status]")).to_have_text("1 result")
    page.keyboard.press("ArrowDown")
    assert field.get_attribute("aria-activedescendant") == "search-all-runs"
    assert violations(page) == []
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/agents/*/")

    page.keyboard.press("g")
    page.keyboard.press("a")
    page.wait_for_url("**/approvals/")
    page.keyboard.press("?")
    expect(page.locator("#search-shortcuts")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("/")  # a list has a search of its own
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.press("Control+k")
    expect(field).to_be_focused()
    page.keyboard.type("new sched")
    page.keyboard.press("Enter")  # before the results of the last letter are shown
    page.wait_for_url("**/schedules/new/")
    page.goto(f"{lived_in.url}/runs/")
    page.keyboard.press("n")
    page.wait_for_url("**/agents/")
    context.close()
    assert received == []


def test_people_who_only_chat_have_the_shortcuts_but_no_palette(browser, lived_in):
    context = browser.new_context()
    page = signed_in(context, lived_in.url, "nia", "secret")
    received = listen(page)
    page.goto(f"{lived_in.url}/chat/?new=1")

    page.keyboard.press("Control+k")
    page.keyboard.press("?")

    dialog = page.locator("#search-shortcuts")
    expect(dialog).to_contain_text("Send the message")
    expect(dialog).not_to_contain_text("Ctrl K")
    expect(page.locator("#palette")).to_have_count(0)
    context.close()
    assert received == []


@pytest.mark.slow
def test_a_tablet_shows_the_palette_as_an_icon(browser, lived_in):
    context = browser.new_context(viewport={"width": 820, "height": 1180})
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(f"{lived_in.url}/")

    page.get_by_role("button", name="Search or jump to").click()

    expect(page.get_by_role("combobox")).to_be_focused()
    context.close()


@pytest.mark.slow
def test_the_palette_has_the_actions_of_the_page_and_the_themes(browser, lived_in):
    context = browser.new_context()
    page = signed_in(context, lived_in.url, "admin", "admin")
    received = listen(page)
    page.goto(f"{lived_in.url}/runs/9002/")
    page.keyboard.press("Control+k")
    expect(page.get_by_role("option", selected=True)).to_contain_text("Home")

    page.keyboard.type("export json")
    group = page.get_by_role("group", name="This page")
    expect(group.get_by_role("option")).to_have_count(1)
    expect(group.get_by_role("option", selected=True)).to_contain_text("More")
    assert violations(page) == []
    page.keyboard.press("Control+a")
    page.keyboard.type("theme dark")
    expect(group.get_by_role("option", selected=True)).to_contain_text("Dark")
    page.keyboard.press("Enter")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.keyboard.press("Control+k")
    page.keyboard.type("re-run")
    expect(group.get_by_role("option", selected=True)).to_contain_text("Re-run")
    page.keyboard.press("Enter")

    page.wait_for_url("**/runs/9002/again/")
    context.close()
    assert received == []


@pytest.mark.slow
def test_the_palette_names_each_action_once(browser, lived_in):
    context = browser.new_context()
    page = signed_in(context, lived_in.url, "admin", "admin")
    received = listen(page)
    page.goto(f"{lived_in.url}/runs/")

    page.keyboard.press("Control+k")
    new_run = page.get_by_role("option", name="New run", exact=True)
    expect(new_run).to_have_count(1)
    page.keyboard.type("export")
    option = page.get_by_role("option", name="CSV")
    expect(option).to_have_text("CSVExport")
    page.keyboard.press("Control+a")
    page.keyboard.type("new run")
    page.get_by_role("option", name="all runs for “new run”").wait_for()
    expect(new_run).to_have_count(1)
    page.keyboard.press("Control+a")
    page.keyboard.type("run 9002")
    page.get_by_role("group", name="Runs", exact=True).get_by_role("option").wait_for()

    context.close()
    assert received == []


def test_the_palette_has_the_menus_of_a_phone(browser, lived_in):
    context = browser.new_context(viewport={"width": 390, "height": 844})
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(f"{lived_in.url}/runs/")

    page.keyboard.press("Control+k")
    page.keyboard.type("export")

    expect(page.get_by_role("option", name="CSV")).to_have_text("CSVExport")
    context.close()
