"""The bar at the top of every page: its words are never cut off."""

import pytest

from tests.browser.driver.chromium import overflow, seen_by

pytestmark = pytest.mark.browser

PARTS = ".top nav > a, .top nav > details, .top .health > span, .top .find span"
CUT = """(parts) => [...document.querySelectorAll(parts)]
  .filter((one) => one.checkVisibility())
  .filter((one) => getComputedStyle(one).display !== "inline")
  .filter((one) => one.scrollWidth > one.clientWidth + 1)
  .map((one) => one.textContent.trim())"""
OVERLAPS = """() => {
  const parts = [...document.querySelectorAll(".top > *, .top .health > span")];
  const seen = parts.filter((one) => one.checkVisibility());
  const boxes = seen.map((one) => one.getBoundingClientRect());
  return seen.filter((one, n) => seen.some((next, m) =>
    m > n && !one.contains(next) && boxes[n].right > boxes[m].left
  )).map((one) => one.className);
}"""
WORDS = "() => [...document.querySelectorAll('.top nav > a')]"
SHOWN = f"({WORDS})().filter((a) => a.checkVisibility()).map((a) => a.firstChild.data)"


@pytest.mark.parametrize(
    "width", [1920, 1680, 1440, 1366, 1280, 1100, 1024, 820, 760, 390]
)
def test_no_word_of_the_bar_is_cut_off(browser, lived_in, width):
    context = browser.new_context(viewport={"width": width, "height": 700})
    page = seen_by(context, lived_in.url, "admin")
    page.goto(f"{lived_in.url}/experiments/")

    assert page.evaluate(CUT, PARTS) == []
    assert page.evaluate(OVERLAPS) == []
    assert overflow(page) == 0
    if width == 1440:
        words = [text.strip() for text in page.evaluate(SHOWN)]
        assert words == [
            *("Home", "Runs", "Approvals", "Agents", "Evaluation", "Tools", "Chat")
        ]
    context.close()
