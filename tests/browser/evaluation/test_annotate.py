"""A queue of runs, scored with the keyboard alone."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.driver.axe import violations
from tests.browser.driver.chromium import listen, signed_in

pytestmark = pytest.mark.browser


def test_runs_are_selected_queued_and_scored_with_the_keyboard(browser, lived_in):
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = signed_in(context, lived_in.url, "admin", "admin")
    received = listen(page)
    page.goto(f"{lived_in.url}/queues/new/")
    page.fill("[name=name]", "Refund answers")
    page.click("text=Create queue")
    page.goto(f"{lived_in.url}/runs/?status=succeeded")
    for key in ("j", "x", "j", "x"):
        page.keyboard.press(key)
    page.click("#run-more summary")
    page.click("#run-more button:has-text('Add to queue')")
    page.click("button:has-text('Add to queue')")
    expect(page.locator("#queue-runs tbody tr")).to_have_count(2)

    page.click("button:has-text('Start scoring')")
    page.wait_for_url(re.compile(r"/runs/\d+/$"))
    first = page.url
    page.keyboard.press("2")
    page.keyboard.press("w")
    page.keyboard.press("c")
    page.keyboard.type("1 wrong")  # digits of a text are no scores
    page.keyboard.press("Escape")
    expect(page.locator("[name=mark]:checked")).to_have_value("2")
    expect(page.locator("[name=labels]:checked")).to_have_value("Policy not followed")
    assert violations(page) == []
    with page.expect_navigation():
        page.keyboard.press("Enter")
    expect(page.locator(".prevdone")).to_contain_text("Just done")
    expect(page).not_to_have_url(first)

    with page.expect_navigation():
        page.keyboard.press("z")
    expect(page).to_have_url(first)
    expect(page.locator("#id_comment")).to_have_value("1 wrong")
    page.keyboard.press("e")
    page.keyboard.type("Yes. ")
    with page.expect_navigation():
        page.keyboard.press("Control+Enter")
    expect(page.locator(".prevdone")).to_contain_text("Just done")
    page.keyboard.press("s")
    expect(page).to_have_url(re.compile(r"/queues/\d+/$"))
    expect(page.locator("#queue-state")).to_contain_text("1 skipped")
    assert received == []
    context.close()
