"""The playground in Chromium: variables as one types, columns that stream."""

import pytest
from playwright.sync_api import expect

from tests.browser.agents.test_first_agent import SECONDS, enter
from tests.browser.driver.chromium import listen, overflow
from tests.browser.driver.editor import open_editor

pytestmark = pytest.mark.browser


def test_a_prompt_is_tried_in_two_columns(browser, first_start):
    page = enter(browser, first_start)
    received = listen(page)
    page.goto(f"{first_start.url}/playground/")

    write(page, 1, 2, "{input} in {ci", "ty}")
    expect(page.locator("textarea[name=in-city]")).to_be_visible(timeout=SECONDS)
    page.fill("textarea[name=in-city]", "北京")
    page.fill("textarea[name=input]", "Plan a day")
    page.click("button:has-text('Column')")
    write(page, 2, 1, "You write at length.")
    page.click(".head button:has-text('Run')")

    for column in ("#playground-column-1", "#playground-column-2"):
        expect(page.locator(f"{column} .answer .prose")).to_contain_text(
            "演示", timeout=SECONDS
        )
        done = page.locator(f"{column} .did [data-status=succeeded]")
        expect(done).to_be_visible(timeout=SECONDS)
    assert page.input_value("textarea[name=in-city]") == "北京"
    assert overflow(page) == 0
    assert received == []
    page.context.close()


def write(page, column, message, *words):
    """Type into the editor of one message; a brace is closed by what completes it."""
    editors = page.locator(f"#playground-column-{column} .editor")
    open_editor(editors.nth(message - 1))
    for one in words:
        page.keyboard.type(one)
