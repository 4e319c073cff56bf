"""A draft that differs from the page is neither tested nor published."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.driver.axe import violations
from tests.browser.driver.chromium import signed_in
from tests.browser.driver.leaving import leave_and_stay

pytestmark = pytest.mark.browser

REFUSED = "Your changes are not saved, because a later draft was saved."
INSTRUCTIONS = "textarea[name=instructions]"


def create_agent(page: Page, url: str, name: str) -> None:
    page.goto(f"{url}/agents/new/")
    page.fill("input[name=name]", name)
    page.locator("#agent-form button:has-text('Create')").click()
    page.wait_for_url(re.compile(r"/agents/\d+/edit/$"))


def open_conflict(page: Page, url: str, name: str) -> None:
    """Save a draft in another tab, and then type in `page`."""
    create_agent(page, url, name)
    other = page.context.new_page()
    other.goto(page.url)
    with other.expect_response("**/save/"):
        other.fill(INSTRUCTIONS, "OTHER TAB TEXT")
    page.fill(INSTRUCTIONS, "MY TEXT")
    expect(page.locator("#agent-state")).to_contain_text("A later draft was saved")


@pytest.mark.slow
def test_a_draft_in_conflict_is_neither_tested_nor_published(browser, lived_in):
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = signed_in(context, lived_in.url, "admin", "admin")
    open_conflict(page, lived_in.url, "conflict")
    chat, publish = page.locator("#agent-test-form"), page.locator("#agent-publish")

    chat.locator("textarea[name=input]").fill("Hello")
    chat.get_by_role("button", name="Send").click()
    expect(chat.get_by_role("alert")).to_contain_text(REFUSED)
    page.locator("#agent-publish-menu > summary").click()
    publish.get_by_role("button", name="Publish").click()
    expect(publish.get_by_role("alert")).to_contain_text(REFUSED)
    expect(page.locator("#agent-chat .ask")).to_have_count(0)
    leave_and_stay(page)
    assert page.input_value(INSTRUCTIONS) == "MY TEXT"

    page.click("button:has-text('Overwrite it')")
    expect(page.locator("#part-toasts")).to_contain_text("saved.")
    page.locator("#agent-publish-menu > summary").click()
    publish.get_by_role("button", name="Publish").click()
    expect(page.locator("#part-toasts")).to_contain_text("Version 1 published")
    page.goto(f"{page.url}edit/")
    assert page.input_value(INSTRUCTIONS) == "MY TEXT"
    context.close()


@pytest.mark.parametrize(("width", "theme"), [(1440, "light"), (390, "dark")])
@pytest.mark.slow
def test_a_page_with_a_conflict_is_accessible(browser, lived_in, width, theme):
    size = {"width": width, "height": 900}
    context = browser.new_context(viewport=size, color_scheme=theme)
    page = signed_in(context, lived_in.url, "admin", "admin")
    open_conflict(page, lived_in.url, f"conflict-{theme}")

    found = violations(page)

    context.close()
    assert found == []


@pytest.mark.slow
def test_a_field_that_is_not_saved_is_asked_about_and_not_tested(browser, lived_in):
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = signed_in(context, lived_in.url, "admin", "admin")
    create_agent(page, lived_in.url, "too-warm")
    chat, field = page.locator("#agent-test-form"), page.locator("[name=temperature]")

    field.fill("99")
    expect(page.locator("#agent-state")).to_contain_text("Not saved, fix below")
    leave_and_stay(page)
    chat.locator("textarea[name=input]").fill("Hello")
    chat.get_by_role("button", name="Send").click()
    expect(field).to_be_focused()
    expect(page.locator("#agent-chat .ask")).to_have_count(0)

    field.fill("1")
    chat.get_by_role("button", name="Send").click()
    expect(page.locator("#agent-chat .ask")).to_have_text("Hello")
    context.close()


def test_a_page_that_shows_an_earlier_draft_does_not_test_the_later_one(
    browser, lived_in
):
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = signed_in(context, lived_in.url, "admin", "admin")
    create_agent(page, lived_in.url, "unchanged")
    other = context.new_page()
    other.goto(page.url)
    with other.expect_response("**/save/"):
        other.fill(INSTRUCTIONS, "OTHER TAB TEXT")

    chat = page.locator("#agent-test-form")
    chat.locator("textarea[name=input]").fill("Hello")
    chat.get_by_role("button", name="Send").click()

    expect(chat.get_by_role("alert")).to_contain_text("Not started: this draft was")
    expect(chat.locator("textarea[name=input]")).to_have_value("Hello")
    context.close()
