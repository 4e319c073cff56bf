"""Selecting rows of a list, and undoing what was done with them."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.driver.axe import violations
from tests.browser.driver.chromium import listen, signed_in

pytestmark = pytest.mark.browser


@pytest.mark.slow
def test_a_toast_is_reached_and_undone_by_keyboard(browser, lived_in):
    context = browser.new_context()
    page = signed_in(context, lived_in.url, "admin", "admin")
    received = listen(page)
    page.goto(f"{lived_in.url}/webhooks/new/")
    page.fill("[name=name]", "undone")
    page.fill("[name=url]", "https://hooks.example/x")
    page.click("#webhook-form button:has-text('Save')")
    page.click("button:has-text('Pause')")
    toast = page.locator("#part-toasts .toast")
    expect(toast).to_contain_text("undone paused.")
    for key in ("g", "n"):
        page.keyboard.press(key)
    expect(toast.locator("button:has-text('Undo')")).to_be_focused()
    assert violations(page) == []

    page.keyboard.press("Enter")

    expect(toast).to_contain_text("undone resumed.")
    expect(page.locator("main button:has-text('Pause')")).to_be_visible()
    expect(page.locator("#main")).to_be_focused()
    page.reload()
    expect(page.locator("#main")).not_to_be_focused()
    assert received == []
    context.close()


def test_enter_on_a_box_asks_before_it_removes(browser, lived_in):
    context = browser.new_context()
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(f"{lived_in.url}/queues/1/")
    rows = page.locator("#queued-run-selection tbody tr")
    count = rows.count()
    rows.nth(2).locator("td.sel input").check()

    page.keyboard.press("Enter")

    expect(page.locator("h1")).to_contain_text("Remove 1 run from the queue?")
    page.go_back()
    expect(rows).to_have_count(count)
    context.close()


def test_a_page_and_a_range_are_selected_archived_and_restored(browser, lived_in):
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = signed_in(context, lived_in.url, "admin", "admin")
    received = listen(page)
    page.goto(f"{lived_in.url}/tools/")
    boxes = page.locator("#tool-selection td.sel input")
    chosen = page.locator("#tool-selection td.sel input:checked")
    every = page.get_by_label("Select all on this page").first
    count = boxes.count()

    every.check()
    expect(chosen).to_have_count(count)
    every.uncheck()
    expect(chosen).to_have_count(0)
    boxes.nth(1).click()
    boxes.nth(3).click(modifiers=["Shift"])
    expect(chosen).to_have_count(3)
    assert every.evaluate("(box) => box.indeterminate")
    assert violations(page) == []

    page.click(".bulk button:has-text('Archive')")
    toast = page.locator("#part-toasts .toast")
    expect(toast).to_contain_text("Archived 3 tools.")
    expect(boxes).to_have_count(count - 3)
    toast.locator("button:has-text('Undo')").click()

    expect(toast).to_contain_text("Undone for 3 tools.")
    expect(boxes).to_have_count(count)
    assert received == []
    context.close()


@pytest.mark.slow
def test_keys_move_through_a_list_select_and_open_rows(browser, lived_in):
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(f"{lived_in.url}/tools/")
    links = page.locator("#tool-selection tbody tr td.fill > a")
    chosen = page.locator("#tool-selection td.sel input:checked")

    for key in ("j", "j", "j", "k", "x"):
        page.keyboard.press(key)
    expect(links.nth(1)).to_be_focused()
    expect(chosen).to_have_count(1)
    for key in ("j", "j", "X"):
        page.keyboard.press(key)
    expect(chosen).to_have_count(3)
    address = links.nth(3).get_attribute("href")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{lived_in.url}{address}")

    page.goto(f"{lived_in.url}/approvals/")
    items = page.locator("#approval-list a.item")
    items.nth(1).click()
    expect(items.nth(1)).to_have_attribute("aria-current", "true")
    address = items.nth(2).get_attribute("href")
    page.keyboard.press("j")
    expect(items.nth(2)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{lived_in.url}{address}")
    context.close()


LISTS = ["agents", "approvals", "schedules", "tools"]


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("name", LISTS)
def test_one_box_of_each_list_selects_the_whole_page(browser, lived_in, name, width):
    context = browser.new_context(viewport={"width": width, "height": 844})
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(f"{lived_in.url}/{name}/")
    boxes = page.locator("form :is(.sel, .pick) input[name]")
    chosen = page.locator("form :is(.sel, .pick) input[name]:checked")
    boxes.last.check()

    every = page.locator("[data-select-page]:visible")
    if boxes.count() > 1:
        every.check()

    expect(chosen).to_have_count(boxes.count())
    expect(every).to_be_checked()
    assert violations(page) == []
    context.close()


@pytest.mark.parametrize("noun", ["tool", "agent"])
def test_filters_apply_at_once_with_short_addresses(browser, lived_in, noun):
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = signed_in(context, lived_in.url, "admin", "admin")
    received = listen(page)
    page.goto(f"{lived_in.url}/{noun}s/")
    search = page.locator(f"#{noun}-filters [name=q]")

    page.select_option(f"#{noun}-filters [name=kind]", index=1)
    expect(page).to_have_url(re.compile(rf"/{noun}s/\?kind=[\w-]+$"))
    search.press_sequentially("plan")
    expect(page).to_have_url(re.compile(rf"/{noun}s/\?q=plan&kind=[\w-]+$"))
    expect(search).to_be_focused()
    expect(search).to_have_value("plan")
    page.click(f"#{noun}-filters a:has-text('Clear')")

    expect(page).to_have_url(re.compile(rf"/{noun}s/\??$"))
    expect(page.locator(f"#{noun}-filters")).to_be_visible()
    assert received == []
    context.close()
