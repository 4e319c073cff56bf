"""Selecting rows of a list, and undoing what was done with them."""

import pytest
from playwright.sync_api import expect

from tests.browser.driver.axe import violations
from tests.browser.driver.chromium import listen, signed_in

pytestmark = pytest.mark.browser


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
    assert received == []
    context.close()
