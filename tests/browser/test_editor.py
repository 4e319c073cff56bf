"""The editors of prompts and of code: loaded when used, and nothing moves then."""

import pytest
from playwright.sync_api import expect

from tests.browser.driver.axe import violations
from tests.browser.driver.chromium import listen, seen_by
from tests.browser.driver.editor import open_editor
from tests.browser.shots import SIZES

pytestmark = pytest.mark.browser

WATCH = """() => {
    window.shifts = [];
    new PerformanceObserver((list) => {
        for (const one of list.getEntries()) shifts.push(one.value);
    }).observe({ type: "layout-shift" });
}"""
LINES = """() => {
    const host = document.querySelector(".editor-host")?.shadowRoot;
    const shown = host?.querySelectorAll(".cm-line")
        ?? document.querySelectorAll(".editor-lines > div");
    return [...shown].filter((line) => line.textContent).map((line) => {
        const range = document.createRange();
        range.selectNodeContents(line);
        const { x, y, width } = range.getBoundingClientRect();
        return [x, y, width].map(Math.round);
    });
}"""
CODE = "".join(f"total_{n} = {n}\n" for n in range(1, 60)) + "sum([1, 2])"


@pytest.fixture
def opened(browser, lived_in, request):
    """A page of admin, in which every complaint of the browser is a failure."""
    width, height = SIZES[getattr(request, "param", "1440")]
    context = browser.new_context(viewport={"width": width, "height": height})
    page = seen_by(context, lived_in.url, "admin")
    received = listen(page)
    yield page
    context.close()
    assert received == []


@pytest.mark.parametrize("opened", SIZES, indirect=True)
@pytest.mark.parametrize("path", ["agents/1/edit/", "tools/new/python/"])
def test_nothing_moves_when_the_editor_opens(opened, lived_in, path):
    opened.goto(f"{lived_in.url}/{path}")
    frame = opened.locator(".editor").first
    frame.scroll_into_view_if_needed()
    assert violations(opened, ["wcag2a", "wcag2aa"]) == []
    before, lines = frame.bounding_box(), opened.evaluate(LINES)
    opened.evaluate(WATCH)

    open_editor(frame)
    opened.wait_for_timeout(100)

    after = frame.bounding_box()
    assert (before["width"], before["height"]) == (after["width"], after["height"])
    assert [line[0] for line in opened.evaluate(LINES)] == [line[0] for line in lines]
    assert [line[2] for line in opened.evaluate(LINES)] == [line[2] for line in lines]
    assert sum(opened.evaluate("shifts")) < 0.001


def test_the_keyboard_opens_the_editor_at_the_caret(opened, lived_in):
    opened.goto(f"{lived_in.url}/tools/new/python/")
    area = opened.locator("[name=code]")
    area.evaluate("area => area.setSelectionRange(2, 2)")
    assert opened.locator(".editor-host").count() == 0

    opened.locator("[name=description]").focus()
    while not opened.evaluate("document.activeElement.closest('.editor')"):
        opened.keyboard.press("Tab")
    expect(opened.locator(".cm-content")).to_be_focused()
    opened.keyboard.type("HERE")

    assert area.input_value().startswith("# HEREThe")


def test_a_click_far_below_keeps_the_scroll_position_and_the_caret(opened, lived_in):
    opened.goto(f"{lived_in.url}/tools/new/python/")
    field = opened.locator(".editor-field")
    opened.evaluate(
        "text => { const area = document.querySelector('[name=code]');"
        " area.value = text; area.dispatchEvent(new Event('input')); }",
        CODE,
    )
    field.evaluate("field => { field.scrollTop = 400 }")
    line = opened.locator(".editor-lines > div").nth(30).bounding_box()

    opened.mouse.click(line["x"] + 300, line["y"] + line["height"] / 2)
    expect(opened.locator(".cm-content")).to_be_focused()
    scrolled = opened.locator(".cm-scroller").evaluate("box => box.scrollTop")
    opened.keyboard.type("0")

    assert abs(scrolled - 400) < 2
    assert opened.input_value("[name=code]").split("\n")[30] == "total_31 = 310"


def test_an_example_chosen_before_the_editor_is_there_is_shown_in_it(opened, lived_in):
    opened.goto(f"{lived_in.url}/tools/new/python/")
    example = opened.locator("[data-example]").last
    opened.locator(".code-menus summary", has_text="Examples").click()
    wanted = example.get_attribute("data-example")

    example.click()

    expect(opened.locator(".cm-content")).to_be_focused()
    assert opened.input_value("[name=code]") == wanted
    expect(opened.locator(".cm-line").first).to_have_text(wanted.split("\n")[0])


def test_a_failed_try_marks_the_line_before_the_editor_was_used(opened, lived_in):
    opened.goto(f"{lived_in.url}/tools/new/python/")
    opened.fill("[name=name]", "fails_late")
    opened.evaluate(
        "() => { const area = document.querySelector('[name=code]');"
        " area.value = 'x = 0\\n1 / x';"
        " area.dispatchEvent(new Event('input', { bubbles: true })); }"
    )
    assert opened.locator(".editor-host").count() == 0

    opened.locator("[data-call]").click()

    expect(opened.locator(".editor .wrong")).to_have_text("1 / x")
    opened.evaluate(
        "document.querySelector('#tool-form').removeAttribute('data-guard')"
    )
    opened.once("dialog", lambda dialog: dialog.accept())


def test_without_the_editor_the_text_field_stays_usable(browser, lived_in):
    context = browser.new_context()
    page = seen_by(context, lived_in.url, "admin")
    page.route("**/vendor/codemirror.min.js", lambda route: route.abort())
    page.goto(f"{lived_in.url}/prompts/new/?kind=plan_execute")
    area = page.locator(".editor-field textarea").first

    area.click()
    page.keyboard.press("Control+a")
    page.keyboard.type("Answer {topic}")

    expect(area).to_be_focused()
    expect(page.locator(".editor-lines .v").first).to_have_text("{topic}")
    expect(page.locator(".editor footer").first).to_contain_text("topic")
    context.close()
