"""The bars of a phone leave in sight what one types."""

import pytest
from playwright.sync_api import expect

from tests.browser.driver.axe import violations
from tests.browser.driver.chromium import signed_in
from tests.browser.shots import PAGES

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("height", [640, 740, 844])
def test_the_answers_cover_no_field_on_a_phone(browser, lived_in, height):
    size = {"width": 390, "height": height}
    context = browser.new_context(viewport=size, has_touch=True)
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(lived_in.url + PAGES["approval"])

    expect(page.locator("#approval-detail .act .primary")).to_be_in_viewport()
    assert violations(page) == []
    page.locator("#approval-note-1").focus()
    bar = page.locator("#approval-detail .act").bounding_box()
    note = page.locator("#approval-note-1").bounding_box()
    context.close()
    assert note["y"] + note["height"] <= bar["y"]
