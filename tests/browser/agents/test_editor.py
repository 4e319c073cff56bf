"""The editors of prompts and of code: text fields that complete, color and mark."""

import time

import pytest
from playwright.sync_api import Page, expect

from tests.browser.driver.axe import violations
from tests.browser.driver.chromium import listen, overflow, seen_by
from tests.browser.driver.editor import OPTIONS, open_editor
from tests.browser.shots import SIZES

pytestmark = pytest.mark.browser

CODE = "".join(f"total_{n} = {n}\n" for n in range(1, 60)) + "sum([1, 2])"
SET = """([name, text]) => {
    const area = document.querySelector(`[name=${name}]`);
    area.value = text;
    area.dispatchEvent(new Event("input", { bubbles: true }));
}"""
CARET = """(area) => {
    const probe = document.createElement("div");
    const style = getComputedStyle(area);
    for (const name of ["font", "padding", "whiteSpace", "overflowWrap", "wordBreak",
                        "width", "tabSize", "boxSizing", "letterSpacing"])
        probe.style[name] = style[name];
    const mark = document.createElement("span");
    probe.style.position = "absolute";
    const place = area.selectionEnd;
    probe.append(area.value.slice(0, place), mark, area.value.slice(place));
    area.parentElement.append(probe);
    const [a, b] = [mark.getBoundingClientRect(), probe.getBoundingClientRect()];
    probe.remove();
    return [a.left - b.left, a.top - b.top].map(Math.round);
}"""
"""Where a text of the same style ends, from the corner of the field."""
DRAWN = """(area) => {
    const before = area.value.slice(0, area.selectionEnd).split("\\n");
    const line = area.previousElementSibling.children[before.length - 1];
    const range = document.createRange();
    let left = before.at(-1).length;
    const walker = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        range.setStart(node, Math.min(left, node.length));
        if (left <= node.length) break;
        left -= node.length;
    }
    range.collapse(true);
    const [a, b] = [range.getBoundingClientRect(), area.getBoundingClientRect()];
    return [a.left - b.left, a.top - b.top].map(Math.round);
}"""
"""Where the lines behind the field draw the same place."""


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


def open_code(page: Page, url: str, text: str = "") -> None:
    page.goto(f"{url}/tools/new/python/")
    open_editor(page.locator(".editor"))
    page.evaluate(SET, ["code", text])


def value(page: Page) -> str:
    return page.input_value("[name=code]")


@pytest.mark.parametrize("opened", SIZES, indirect=True)
@pytest.mark.parametrize(
    ("path", "name"),
    [("agents/new/", "instructions"), ("tools/new/python/", "code")],
)
def test_the_lines_stand_below_the_text(opened, lived_in, path, name):
    opened.goto(f"{lived_in.url}/{path}")
    area = opened.locator(f"textarea[name={name}]")
    area.scroll_into_view_if_needed()
    assert violations(opened, ["wcag2a", "wcag2aa"]) == []
    words = "Answer {input} with “北京的天气” and # 12 'colors' def word " * 4
    opened.evaluate(SET, [name, f"def f(x):  # why\n    return 'text'\n\t{words}"])
    area.focus()

    for place in (3, 20, 40, 60, 150, 250):
        area.evaluate("(area, at) => area.setSelectionRange(at, at)", place)
        left, top = area.evaluate(CARET)
        drawn_left, drawn_top = area.evaluate(DRAWN)
        assert abs(left - drawn_left) <= 1
        assert abs(top - drawn_top) <= 4  # a glyph of another font is taller
    assert overflow(opened) == 0


def test_the_keyboard_reaches_and_leaves_the_editor(opened, lived_in):
    opened.goto(f"{lived_in.url}/tools/new/python/")
    area = opened.locator("[name=code]")
    area.evaluate("area => area.setSelectionRange(2, 2)")

    opened.locator("[name=description]").focus()
    while not opened.evaluate("document.activeElement.closest('.editor')"):
        opened.keyboard.press("Tab")
    expect(area).to_be_focused()
    opened.keyboard.type("HERE")
    assert area.input_value().startswith("# HEREThe")

    opened.keyboard.press("Escape")
    opened.keyboard.press("Tab")
    expect(area).not_to_be_focused()


def test_lines_are_indented_dedented_and_undone(opened, lived_in):
    open_code(opened, lived_in.url)

    opened.keyboard.type("if input:")
    opened.keyboard.press("Enter")
    opened.keyboard.type("x = 1")
    opened.keyboard.press("Enter")
    opened.keyboard.type("y = 2")
    assert value(opened) == "if input:\n    x = 1\n    y = 2"
    opened.keyboard.press("Control+a")
    opened.keyboard.press("Tab")
    assert value(opened) == "    if input:\n        x = 1\n        y = 2"
    opened.keyboard.press("Shift+Tab")
    opened.keyboard.press("Shift+Tab")
    assert value(opened) == "if input:\nx = 1\ny = 2"
    opened.keyboard.press("Control+z")
    assert value(opened) == "if input:\n    x = 1\n    y = 2"
    opened.keyboard.press("Control+z")
    opened.keyboard.press("Control+y")
    assert value(opened) == "if input:\n    x = 1\n    y = 2"
    shown = opened.locator(".editor-lines > div")
    expect(shown).to_have_text(["if input:", "    x = 1", "    y = 2"])


def test_a_click_far_below_keeps_the_scroll_position_and_the_caret(opened, lived_in):
    open_code(opened, lived_in.url, CODE)
    field = opened.locator(".editor-field")
    field.evaluate("field => { field.scrollTop = 400 }")
    line = opened.locator(".editor-lines > div").nth(30).bounding_box()

    opened.mouse.click(line["x"] + 300, line["y"] + line["height"] / 2)
    scrolled = field.evaluate("box => box.scrollTop")
    opened.keyboard.type("0")

    assert abs(scrolled - 400) < 2
    assert value(opened).split("\n")[30] == "total_31 = 310"


@pytest.mark.slow
def test_the_caret_stays_in_sight(opened, lived_in):
    open_code(opened, lived_in.url, CODE)
    field = opened.locator(".editor-field")
    opened.keyboard.press("Control+End")

    for _ in range(5):
        opened.keyboard.press("Enter")
    opened.keyboard.type("long = " + "1 + " * 120)
    opened.keyboard.press("Escape")

    seen = field.evaluate(
        "box => [box.scrollTop + box.clientHeight >= box.scrollHeight - 20,"
        " box.scrollLeft > 1000, box.querySelector('textarea').scrollTop]"
    )
    assert seen == [True, True, 0]
    opened.keyboard.press("Home")
    wait = "() => document.querySelector('.editor-field').scrollLeft < 100"
    opened.wait_for_function(wait)


@pytest.mark.slow
def test_words_are_completed_by_keys_and_by_the_mouse(opened, lived_in):
    open_code(opened, lived_in.url)
    shown = opened.locator(OPTIONS)
    area = opened.locator("[name=code]")

    opened.keyboard.type("counter = inp")
    expect(shown.locator("[aria-selected=true]")).to_contain_text("input")
    chosen = area.get_attribute("aria-activedescendant")
    assert chosen
    expect(shown.locator(f"#{chosen}")).to_contain_text("input")
    assert violations(opened, ["wcag2a", "wcag2aa"]) == []
    opened.keyboard.press("Tab")
    expect(shown).to_have_count(0)
    opened.keyboard.press("Enter")
    opened.keyboard.type("cou")
    expect(shown).to_contain_text("counter")
    opened.keyboard.press("Escape")
    expect(shown).to_have_count(0)
    opened.keyboard.press("Control+Space")
    shown.locator("li:has-text('counter')").click()
    opened.keyboard.type(".spl")
    opened.keyboard.press("ArrowDown")
    expect(shown.locator("[aria-selected=true]")).to_contain_text("splitlines")
    opened.keyboard.press("ArrowUp")
    opened.keyboard.press("Enter")
    assert value(opened) == "counter = input\ncounter.split"

    opened.keyboard.press("Enter")
    opened.keyboard.type("# cou")
    expect(shown).to_have_count(0)
    opened.keyboard.press("Control+a")
    opened.keyboard.type("import js")
    expect(shown).to_contain_text("json")


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(["values = [1, 2]", "value = sum(values)", "value"], id="name"),
        pytest.param(
            ["def f(items: list[int], item: int = 0) -> int:", "return item"],
            id="parameter",
        ),
        pytest.param(["re = 4", "z = re", "y = r"], id="short name"),
        pytest.param(["ok = None", "ok = False", "KeyError"], id="capitals"),
        pytest.param(
            ['"""Return the first', "of the list, or the in", '"""', "x = '", "le"],
            id="text",
        ),
        pytest.param(["# the len", "x = 'le", "inp", '"""inp"""'], id="open text"),
    ],
)
def test_enter_breaks_the_line_and_changes_no_word(opened, lived_in, lines):
    open_code(opened, lived_in.url)

    for line in lines:
        opened.keyboard.type(line)
        opened.keyboard.press("Enter")

    typed = [line.strip() for line in value(opened).split("\n")]
    assert typed == [*lines, ""]


@pytest.mark.parametrize(
    ("text", "is_offered"),
    [
        ('"""In\nle', False),
        ("'''In\n''' + le", True),
        ('x = "a" + le', True),
        (r'x = "\" + le', False),
        ("# '\nle", True),
        ("x = '# ' + le", True),
        ("x = 1  # le", False),
    ],
)
@pytest.mark.slow
def test_words_are_completed_outside_of_texts_and_comments(
    opened, lived_in, text, is_offered
):
    open_code(opened, lived_in.url, text[:-1])
    opened.keyboard.press("Control+End")

    opened.keyboard.type("e")

    expect(opened.locator(OPTIONS)).to_have_count(int(is_offered))
    opened.keyboard.press("Escape")
    opened.keyboard.press("Control+Space")
    expect(opened.locator(OPTIONS)).to_have_count(int(is_offered))


def test_enter_accepts_from_a_list_that_was_asked_for(opened, lived_in):
    open_code(opened, lived_in.url)
    shown = opened.locator(OPTIONS)

    opened.keyboard.type("x = s")
    opened.keyboard.press("Control+Space")
    opened.keyboard.type("or")
    expect(shown.locator("[aria-selected=true]")).to_contain_text("sorted")
    opened.keyboard.press("Enter")
    opened.keyboard.type("(le")
    opened.keyboard.press("Tab")

    assert value(opened) == "x = sorted(len"
    opened.keyboard.press("Control+Space")
    expect(shown).to_have_count(0)  # the word is whole and nothing is longer


@pytest.mark.slow
def test_what_is_wrong_with_a_prompt_is_said_below(opened, lived_in):
    opened.goto(f"{lived_in.url}/agents/new/")
    open_editor(opened.locator(".editor"))
    problem = opened.locator(".editor .problem")

    opened.keyboard.press("Control+a")
    opened.keyboard.insert_text("Be brief.\nAnswer {inputs} now.")
    expect(problem).to_contain_text("Line 2: Did you mean {input}?")
    expect(opened.locator(".editor-lines .doubtful")).to_have_text("{inputs}")
    opened.keyboard.press("Control+a")
    opened.keyboard.insert_text('{ "a": {{ } ')
    expect(problem).to_contain_text("Line 1: Unbalanced brace.")
    opened.keyboard.press("Control+a")
    opened.keyboard.insert_text("Answer {input} as {{}}.")
    expect(problem).to_have_text("")
    expect(opened.locator(".editor-lines .v")).to_have_text("{input}")


def test_an_example_is_undone_like_typed_text(opened, lived_in):
    opened.goto(f"{lived_in.url}/tools/new/python/")
    before = value(opened)
    example = opened.locator("[data-example]").last
    opened.locator(".code-menus summary", has_text="Examples").click()
    wanted = example.get_attribute("data-example")

    example.click()

    expect(opened.locator("[name=code]")).to_be_focused()
    assert value(opened) == wanted
    expect(opened.locator(".editor-lines > div").first).to_have_text(
        wanted.split("\n")[0]
    )
    opened.keyboard.press("Control+z")
    assert value(opened) == before


def test_a_marked_line_moves_with_the_text_until_it_is_changed(opened, lived_in):
    open_code(opened, lived_in.url, "x = 0\n1 / x")
    wrong = opened.locator(".editor .wrong")
    opened.evaluate(
        "document.querySelector('[name=code]').dispatchEvent(new CustomEvent("
        "'editor:error', { detail: { line: 2, text: 'division by zero' } }))"
    )
    problem = opened.locator(".editor > footer > .problem")
    expect(wrong).to_have_text("1 / x")
    expect(problem).to_have_text("Line 2: division by zero")

    opened.keyboard.press("Control+Home")
    opened.keyboard.press("Enter")
    expect(wrong).to_have_text("1 / x")
    expect(problem).to_have_text("Line 3: division by zero")
    opened.keyboard.press("Control+End")
    opened.keyboard.type("1")
    expect(wrong).to_have_count(0)
    expect(problem).to_have_text("")


@pytest.mark.parametrize("opened", SIZES, indirect=True)
def test_the_place_of_the_caret_and_the_lines_are_counted(opened, lived_in):
    open_code(opened, lived_in.url, "a = 1\nb = 2")
    _problem, place, size, _help = opened.locator(".editor > footer > span").all()

    opened.keyboard.press("Control+Home")
    expect(place).to_have_text("Line 1, column 1")
    expect(size).to_have_text("2 lines")
    opened.keyboard.press("Control+End")
    opened.keyboard.type("3")
    expect(place).to_have_text("Line 2, column 7")
    opened.keyboard.press("Control+a")
    opened.keyboard.press("Delete")

    expect(place).to_have_text("Line 1, column 1")
    expect(size).to_have_text("1 line")
    assert overflow(opened) == 0


def test_a_failed_try_marks_the_line(opened, lived_in):
    opened.goto(f"{lived_in.url}/tools/new/python/")
    opened.fill("[name=name]", "fails_late")
    opened.evaluate(SET, ["code", "x = 0\n1 / x"])

    opened.locator("[data-call]").click()

    expect(opened.locator(".editor .wrong")).to_have_text("1 / x")
    opened.evaluate(
        "document.querySelector('#tool-form').removeAttribute('data-guard')"
    )
    opened.once("dialog", lambda dialog: dialog.accept())


def test_two_thousand_lines_are_edited(opened, lived_in, record_property):
    text = "\n".join(f"t{n} = {n}  # 'x'" for n in range(2_000))
    open_code(opened, lived_in.url, text)
    opened.keyboard.press("Control+Home")

    began = time.monotonic()
    opened.keyboard.type("a = 1; ")
    record_property("seconds", time.monotonic() - began)

    assert value(opened) == "a = 1; " + text
    expect(opened.locator(".editor-lines > div")).to_have_count(2_000)
    expect(opened.locator(".editor-lines > div").first).to_have_text(
        "a = 1; t0 = 0  # 'x'"
    )
