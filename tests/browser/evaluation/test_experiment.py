"""The page of an experiment at full size."""

import pytest
from playwright.sync_api import expect

from tests.browser.driver.chromium import signed_in
from tests.browser.shots import PAGES
from tests.support.timing import wait_until

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


def test_cells_are_selected_rated_and_opened_with_the_keyboard(browser, lived_in):
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(lived_in.url + PAGES["experiment"])

    def selected() -> list[object]:
        """Return the row and the column of the selected cell."""
        return page.locator(".cell[aria-current]").evaluate(
            "e => [e.closest('tr').rowIndex, e.closest('td').cellIndex]"
        )

    def press(key: str, row: int, column: int) -> None:
        page.keyboard.press(key)
        wait_until(lambda: selected() == [row, column], seconds=20)

    first, last = 3, 4
    assert selected() == [1, last]
    press("j", 2, last)
    press("h", 2, first)
    press("k", 1, first)
    press("l", 1, last)
    press("w", 2, last)
    assert page.locator("#experiment-selected h2").inner_text() == "Example 2"
    page.keyboard.press("2")
    failed = page.locator("#experiment-selected [data-press='2']")
    wait_until(lambda: failed.get_attribute("aria-pressed") == "true", seconds=20)
    press("j", 3, last)
    page.locator("#experiment-selected .seg label:has-text('Expected')").click()
    expect(page.locator("[data-view=expected]")).to_be_visible()
    expect(page.locator("[data-view=difference]")).to_be_hidden()
    press("k", 2, last)
    press("j", 3, last)
    page.locator("[title='Next example']").click()
    wait_until(lambda: selected() == [4, last], seconds=20)
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs/*/")
    context.close()


@pytest.mark.slow
def test_a_late_update_does_not_undo_the_order(browser, lived_in):
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = signed_in(context, lived_in.url, "admin", "admin")
    address, held = lived_in.url + PAGES["experiment-live"], []
    page.goto(address)
    page.route(address, lambda route: held.append(route))
    wait_until(lambda: page.wait_for_timeout(100) or held, seconds=30)

    page.select_option("#experiment-sort", "better")
    expect(page).to_have_url(f"{address}?sort=better")
    page.unroute(address)
    for route in held:
        route.fallback()
    page.wait_for_timeout(1_000)

    expect(page.locator("#experiment-sort")).to_have_value("better")
    polled = page.locator("#experiment-result").get_attribute("hx-get")
    assert polled == f"{PAGES['experiment-live']}?sort=better"
    context.close()
