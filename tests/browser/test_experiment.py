"""The page of an experiment at full size."""

import pytest

from tests.browser.driver.chromium import signed_in
from tests.browser.shots import PAGES

pytestmark = pytest.mark.browser


def test_failed_runs_of_candidates_are_seen_without_scrolling(browser, lived_in):
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(lived_in.url + PAGES["experiment"])

    hidden = page.locator(".exp-figs").evaluate("e => e.scrollWidth - e.clientWidth")
    cut = page.locator(".cell").evaluate_all(
        "cells => cells.filter(e => e.scrollWidth > e.clientWidth).length"
    )

    context.close()
    assert (hidden, cut) == (0, 0)
