"""axe-core looks at every page and state, wide and on a phone, light and dark."""

from collections.abc import Callable, Iterator
from functools import cache

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.axe import violations, violations_of_both_themes
from tests.browser.chromium import overflow, seen_by, signed_in
from tests.browser.focus import hidden_focus
from tests.browser.moves import MORE, MOVES, beat
from tests.browser.shots import NEWCOMERS, PAGES, SIZES, STRANGERS, opening
from tests.browser.site import Site

pytestmark = pytest.mark.browser

STATES = {
    name: move for name, move in MOVES.items() if getattr(move, "func", move) != beat
}
"""Without those that change the site: they show pages of `PAGES` at another time."""
LOOKS = [
    *(("admin", name, move) for name, move in opening({**PAGES, **MORE}).items()),
    *(("admin", name, move) for name, move in STATES.items()),
    *(("nia", name, move) for name, move in opening(NEWCOMERS).items()),
    *(("", name, move) for name, move in opening(STRANGERS).items()),
]
Opener = Callable[[str, str], Page]


@pytest.fixture(scope="module")
def windows(browser: Browser, lived_in: Site) -> Iterator[Opener]:
    """Open empty windows by person and size; each person signs in once."""
    opened: list[BrowserContext] = []

    @cache
    def window_of(person: str, size: str) -> BrowserContext:
        width, height = SIZES[size]
        context = browser.new_context(viewport={"width": width, "height": height})
        opened.append(context)
        seen_by(context, lived_in.url, person).close()
        return context

    yield lambda person, size: window_of(person, size).new_page()
    for context in opened:
        context.close()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("person", "move"),
    [pytest.param(person, move, id=name) for person, name, move in LOOKS],
)
def test_axe_finds_no_fault_and_no_bar_hides_the_focus(
    windows, lived_in, person, move, size
):
    page = windows(person, size)
    move(page, lived_in)

    assert violations_of_both_themes(page) == []
    assert overflow(page) <= 0
    assert hidden_focus(page) == []
    page.close()


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
