"""The bars of a phone leave in sight what one types, and open menus are accessible."""

import pytest
from playwright.sync_api import expect

from tests.browser.driver.axe import violations
from tests.browser.driver.chromium import signed_in
from tests.browser.shots import PAGES

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SMALL_BUTTONS = """
() => {
  const menu = document.querySelector("#run-actions details[open].menu > div");
  const box = menu.getBoundingClientRect();
  for (const [id, left] of [
    ["under", box.left - 5],
    ["beside", box.left - 60],
    ["next", box.left - 48],
  ]) {
    const button = document.createElement("button");
    button.id = id;
    button.textContent = id;
    button.style.cssText = `position: absolute; z-index: 0; overflow: hidden;
      left: ${left}px; top: ${box.top + 40}px; width: 12px; height: 12px; padding: 0`;
    document.body.append(button);
  }
}
"""
"""Adds a button that is partly under the menu and two beside it, which touch."""


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


@pytest.mark.parametrize(
    ("path", "width", "menu", "part"),
    [
        ("/agents/1/edit/", 1440, "#agent-publish-menu", "#agent-difference-1 h3"),
        ("/runs/9002/", 1440, "#run-actions details.menu:has-text('More')", "form"),
        ("/chat/travel-planner/900/", 390, "main details.menu", "a"),
    ],
)
def test_a_page_with_an_open_menu_is_accessible(
    browser, lived_in, path, width, menu, part
):
    context = browser.new_context(viewport={"width": width, "height": 900})
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(lived_in.url + path)

    opened = page.locator(menu).filter(visible=True).first
    opened.locator("summary").click()
    expect(opened.locator(f"> div {part}").first).to_be_visible()
    found = violations(page)

    context.close()
    assert found == []


def test_a_small_target_beside_an_open_menu_is_still_found(browser, lived_in):
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(lived_in.url + "/runs/9002/")
    page.locator("#run-actions details.menu:has-text('More') > summary").click()
    page.evaluate(SMALL_BUTTONS)

    found = violations(page, ["wcag22aa"])

    context.close()
    targets = [line.split("'")[1] for line in found]
    assert targets == ["#beside", "#next"]
