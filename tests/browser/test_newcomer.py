"""A newcomer's way: `make run`, open the link, press Run, watch, read the answer."""

import time

import pytest
from playwright.sync_api import expect

from tests.browser.driver.chromium import listen
from tests.faults.site import start

pytestmark = pytest.mark.browser

LONG = 60_000


def test_the_first_link_leads_to_a_run_that_shows_its_first_step(
    browser, tmp_path_factory: pytest.TempPathFactory, record_property
):
    site = start(tmp_path_factory.mktemp("first") / "data")
    try:
        site.wait_for("To sign in as admin, open:")
        site.wait_for("Press Ctrl-C to stop")
        context = browser.new_context()
        page = context.new_page()
        complaints = listen(page)
        page.goto(site.login_link)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("button", name="Run", exact=True).click()
        clicked = time.monotonic()
        page.locator("#run-steps").get_by_text("weather_sample").wait_for(timeout=LONG)
        record_property("seconds", time.monotonic() - clicked)
        progress = page.locator("#run-progress")
        expect(progress).to_contain_text("Succeeded", timeout=LONG)
        heading = page.get_by_role("heading", name="A day out in Beijing", exact=True)
        expect(heading).to_be_visible()
        page.reload()
        expect(heading).to_be_visible()
        page.goto(site.login_link)
        used = page.get_by_role("heading", name="This link is not valid")
        expect(used).to_be_visible()
        context.close()
    finally:
        site.end()

    assert complaints == []
