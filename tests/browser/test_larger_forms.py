"""Forms in Chromium: nothing typed is lost, and the console stays empty."""

import pytest
from playwright.sync_api import expect

from tests.browser.driver.chromium import listen, signed_in

pytestmark = pytest.mark.browser


def test_a_resized_field_is_swapped_without_a_console_error(browser, lived_in):
    context = browser.new_context()
    page = signed_in(context, lived_in.url, "admin", "admin")
    heard = listen(page)
    page.goto(f"{lived_in.url}/agents/1/edit/?try=side")
    field = page.locator("#agent-side textarea").first
    field.evaluate("field => { field.style.height = '200px' }")

    page.click("#agent-try nav a:has-text('Compare')")

    expect(field).not_to_have_attribute("style", "height: 200px;")
    assert heard == []
    context.close()
