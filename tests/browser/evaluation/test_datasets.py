"""Filling a dataset: a dropped file, cells edited in place, and a step of a run."""

import re
from collections.abc import Iterator
from urllib.parse import parse_qs

import pytest
from playwright.sync_api import Locator, Page, Request, Route, expect

from tests.browser.driver.chromium import listen, signed_in
from tests.browser.shots import PAGES
from tests.support.timing import wait_until

pytestmark = pytest.mark.browser

DROP = """text => {
    const files = new DataTransfer();
    files.items.add(new File([text], "more.csv", {type: "text/csv"}));
    const send = name => document.body.dispatchEvent(new DragEvent(
        name, {bubbles: true, cancelable: true, dataTransfer: files}));
    send("dragover");
    const isMarked = document.body.hasAttribute("data-dropping");
    send("drop");
    return isMarked;
}"""


def drop_on_new_dataset(page: Page, url: str) -> bool:
    """Drop two examples on the page of a new dataset; return if it shows that."""
    page.goto(f"{url}/datasets/new/")
    page.get_by_label("Name", exact=True).fill("Dropped")
    page.get_by_role("button", name="Create").click()
    page.wait_for_url(re.compile(r"/datasets/\d+/$"))
    text = "question,answer\nIs it open?,Yes\nWhere?,Here\n"
    return bool(page.evaluate(DROP, text))


@pytest.fixture
def faulty_table(browser, lived_in) -> Iterator[Page]:
    """The page of a dataset with two examples."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = signed_in(context, lived_in.url, "admin", "admin")
    drop_on_new_dataset(page, lived_in.url)
    preview = page.locator("#dataset-import")
    preview.get_by_role("button", name=re.compile("^Import")).click()
    expect(page.locator(".dstab tbody tr")).to_have_count(2)
    yield page
    context.close()


@pytest.fixture
def table(faulty_table) -> Iterator[Page]:
    """The same, without errors at the end."""
    received = listen(faulty_table)
    yield faulty_table
    assert received == []


def cell_of(page: Page, row: int, field: str) -> Locator:
    rows = page.locator("tr[data-cell-url]")
    return rows.nth(row).locator(f"[data-field^='{field}']")


def record_saves(page: Page) -> list[str]:
    """Return a list that fills with the texts of cells that are sent."""
    sent: list[str] = []

    def on_request(request: Request) -> None:
        if request.method == "POST":
            [text] = parse_qs(request.post_data, keep_blank_values=True)["text"]
            sent.append(text)

    page.on("request", on_request)
    return sent


def hold_cells(page: Page) -> list[Route]:
    """Return a list that fills with requests for cells, which a test lets go on."""
    held: list[Route] = []
    page.route("**/cell/**", lambda route: held.append(route))
    return held


def wait_for_request(page: Page, held: list[Route]) -> Route:
    wait_until(lambda: page.wait_for_timeout(20) or held, seconds=30)
    return held.pop()


def open_box(page: Page, row: int, field: str, text: str) -> None:
    cell_of(page, row, field).click()
    box = page.locator(".cellbox")
    expect(box).to_be_focused()
    box.fill(text)


def test_a_dropped_file_is_previewed_and_imported(browser, lived_in):
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = signed_in(context, lived_in.url, "admin", "admin")
    received = listen(page)

    is_marked = drop_on_new_dataset(page, lived_in.url)

    assert is_marked
    preview = page.locator("#dataset-import")
    expect(preview).to_contain_text("more.csv")
    expect(preview).to_contain_text("2 new examples")
    preview.get_by_role("button", name=re.compile("^Import")).click()
    expect(page.locator(".dstab tbody tr")).to_have_count(2)
    assert received == []
    context.close()


OTHERS = [
    pytest.param(0, "answer", id="same row"),
    pytest.param(1, "input", id="other row"),
]


@pytest.mark.parametrize(("row", "field"), OTHERS)
def test_a_click_on_another_cell_saves_and_opens_that_cell(table, row, field):
    sent, address = record_saves(table), table.url
    before = cell_of(table, row, field).inner_text()
    open_box(table, 0, "input", "Open today?")
    table.mouse.move(0, 0)

    cell_of(table, row, field).click()
    table.keyboard.type(" They have merged")

    box = cell_of(table, row, field).locator(".cellbox")
    expect(box).to_have_value(f"{before} They have merged")
    expect(box).to_be_focused()
    table.keyboard.press("Enter")
    expect(table.locator(".cellbox")).to_have_count(0)
    expect(cell_of(table, row, field)).to_have_text(f"{before} They have merged")
    expect(cell_of(table, 0, "input")).to_have_text("Open today?")
    assert sent == ["Open today?", f"{before} They have merged"]
    assert table.url == address


@pytest.mark.parametrize(("row", "field"), OTHERS)
def test_keys_wait_for_the_cell_on_a_slow_connection(table, row, field):
    sent, address = record_saves(table), table.url
    open_box(table, 0, "input", "Open today?")
    held = hold_cells(table)
    before = cell_of(table, row, field).inner_text()

    cell_of(table, row, field).click()
    saving = wait_for_request(table, held)
    table.keyboard.type(" g a")
    saving.continue_()
    opening = wait_for_request(table, held)
    table.keyboard.type("n?x")
    table.keyboard.press("Backspace")
    opening.continue_()

    box = cell_of(table, row, field).locator(".cellbox")
    expect(box).to_have_value(f"{before} g an?")
    expect(box).to_be_focused()
    assert (opening.request.method, table.url) == ("GET", address)
    assert sent == ["Open today?"]


def test_a_slow_click_opens_the_cell_although_its_row_was_replaced(table):
    open_box(table, 0, "input", "Open today?")

    with table.expect_response("**/cell/?field=answer"):
        cell_of(table, 0, "answer").hover()
        table.mouse.down()
    expect(cell_of(table, 0, "answer").locator(".cellbox")).to_be_focused()
    table.mouse.up()
    table.keyboard.type("!")

    expect(table.locator(".cellbox")).to_have_value("Yes!")


def test_the_cell_that_was_clicked_last_opens(table):
    sent, held = record_saves(table), hold_cells(table)
    cell_of(table, 0, "answer").click()
    opening = wait_for_request(table, held)
    cell_of(table, 1, "answer").click()
    table.keyboard.type("!")

    opening.continue_()
    wait_for_request(table, held).continue_()

    expect(table.locator(".cellbox")).to_have_value("Here!")
    expect(cell_of(table, 0, "answer")).to_have_text("Yes")
    assert sent == []


def test_an_unchanged_cell_is_closed_by_a_click_elsewhere(table):
    sent = record_saves(table)
    open_box(table, 0, "answer", "Yes")

    cell_of(table, 0, "input").click()

    box = cell_of(table, 0, "input").locator(".cellbox")
    expect(box).to_be_focused()
    expect(table.locator(".cellbox")).to_have_count(1)
    table.get_by_label("Search examples").click()
    expect(table.locator(".cellbox")).to_have_count(0)
    expect(table.get_by_label("Search examples")).to_be_focused()
    assert sent == []


def test_keys_move_between_cells(table):
    sent = record_saves(table)
    open_box(table, 0, "input", "Open today?")

    table.keyboard.press("Tab")
    table.keyboard.type("!")
    expect(cell_of(table, 0, "answer").locator(".cellbox")).to_have_value("Yes!")
    table.keyboard.press("Shift+Tab")
    expect(cell_of(table, 0, "input").locator(".cellbox")).to_be_focused()
    table.keyboard.press("Enter")
    expect(cell_of(table, 0, "input")).to_be_focused()
    table.keyboard.press("Enter")
    expect(table.locator(".cellbox")).to_be_focused()
    table.keyboard.type(" No.")
    table.keyboard.press("Escape")

    expect(cell_of(table, 0, "input")).to_have_text("Open today?")
    expect(cell_of(table, 0, "input")).to_be_focused()
    assert sent == ["Open today?", "Yes!"]


def test_the_keyboard_reaches_the_cells_and_adds_a_row(table):
    sent, address = record_saves(table), table.url
    box, rows = table.locator(".cellbox"), table.locator("tr[data-cell-url]")
    table.keyboard.press("ArrowDown")
    expect(cell_of(table, 0, "input")).to_be_focused()
    table.keyboard.press("ArrowDown")
    table.keyboard.press("ArrowRight")
    expect(cell_of(table, 1, "answer")).to_be_focused()
    table.locator("[name=pick]").first.focus()
    table.keyboard.press("Enter")

    table.keyboard.press("a")
    expect(rows).to_have_count(3)
    table.keyboard.type("Not this")
    table.keyboard.press("Escape")
    expect(rows).to_have_count(2)
    table.keyboard.press("a")
    table.keyboard.type("When?")
    expect(box).to_have_value("When?")
    table.keyboard.press("Tab")
    expect(cell_of(table, 2, "answer").locator(".cellbox")).to_be_focused()
    table.keyboard.type("Now")
    table.keyboard.press("Enter")

    expect(cell_of(table, 2, "answer")).to_have_text("Now")
    expect(cell_of(table, 2, "input")).to_have_text("When?")
    assert sent == ["When?", "Now"]
    assert table.url == address


def test_a_click_beside_the_table_saves_once(table):
    sent = record_saves(table)
    open_box(table, 0, "answer", "No")

    table.get_by_label("Search examples").click()

    expect(cell_of(table, 0, "answer")).to_have_text("No")
    expect(table.get_by_label("Search examples")).to_be_focused()
    assert sent == ["No"]


@pytest.mark.parametrize("row", [0, 1])
def test_a_refused_text_keeps_its_cell_open_after_a_click_elsewhere(table, row):
    open_box(table, 0, "calls", "get {1")

    cell_of(table, row, "answer").click()

    expect(table.get_by_role("alert").filter(has_text="Expected calls")).to_be_visible()
    box = cell_of(table, 0, "calls").locator(".cellbox")
    expect(box).to_have_value("get {1")
    expect(box).to_be_focused()
    cell_of(table, row, "answer").click()
    expect(table.locator(".cellbox")).to_have_count(1)
    expect(box).to_have_value("get {1")
    box.fill("get")
    cell_of(table, row, "answer").click()
    expect(cell_of(table, row, "answer").locator(".cellbox")).to_be_focused()
    expect(cell_of(table, 0, "calls")).to_have_text("get")


@pytest.mark.slow
def test_a_cell_that_was_changed_elsewhere_is_replaced_only_by_saving_again(table):
    open_box(table, 0, "answer", "No")
    other = table.context.new_page()
    other.goto(table.url)
    open_box(other, 0, "answer", "Maybe")
    other.keyboard.press("Enter")
    expect(cell_of(other, 0, "answer")).to_have_text("Maybe")
    other.close()

    table.keyboard.press("Enter")

    alert = table.get_by_role("alert").filter(has_text="It is now: “Maybe”.")
    expect(alert).to_be_visible()
    box = table.locator(".cellbox")
    expect(box).to_have_value("No")
    expect(box).to_be_focused()
    table.keyboard.press("Enter")
    expect(cell_of(table, 0, "answer")).to_have_text("No")
    expect(box).to_have_count(0)


def test_a_text_that_is_too_long_keeps_its_cell_open_after_a_click_elsewhere(table):
    sent = record_saves(table)
    open_box(table, 0, "answer", "x" * 100_001)

    cell_of(table, 1, "answer").click()

    expect(table.locator(".cellbox")).to_have_count(1)
    expect(cell_of(table, 0, "answer").locator(".cellbox")).to_be_focused()
    table.keyboard.press("Escape")
    expect(cell_of(table, 0, "answer")).to_have_text("Yes")
    assert sent == []


def test_a_text_that_did_not_arrive_stays_in_its_cell(faulty_table):
    open_box(faulty_table, 0, "answer", "No")
    held = hold_cells(faulty_table)

    cell_of(faulty_table, 1, "answer").click()
    wait_for_request(faulty_table, held).abort()

    box = cell_of(faulty_table, 0, "answer").locator(".cellbox")
    expect(box).to_be_editable()
    expect(box).to_have_value("No")
    expect(faulty_table.locator(".cellbox")).to_have_count(1)
    faulty_table.unroute("**/cell/**")
    cell_of(faulty_table, 1, "answer").click()
    expect(cell_of(faulty_table, 1, "answer").locator(".cellbox")).to_be_focused()
    expect(cell_of(faulty_table, 0, "answer")).to_have_text("No")


@pytest.mark.slow
def test_a_cell_that_is_far_too_long_is_refused_where_it_is(browser, lived_in):
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = signed_in(context, lived_in.url, "admin", "admin")
    received = listen(page)
    page.goto(lived_in.url + PAGES["dataset"])
    cell = page.locator("[data-field=answer]").first
    before = cell.inner_text()
    cell.click()
    box = page.locator(".cellbox")
    box.fill("x" * 10_000_000)
    page.keyboard.press("Enter")

    assert box.evaluate("box => box.validationMessage") == (
        "The text has 10,000,000 characters, at most 100,000 are allowed."
    )
    expect(box).to_be_focused()
    box.fill("😀" * 60_000)  # 120,000 units of JavaScript
    assert box.evaluate("box => box.validationMessage") == ""
    page.keyboard.press("Escape")
    expect(cell).to_have_text(before)
    page.goto(f"{page.url}examples/new/")
    answer = page.get_by_label("Expected answer")
    answer.fill("x" * 100_001)
    assert "100,001" in answer.evaluate("box => box.validationMessage")
    assert received == []
    context.close()


def test_a_step_leads_to_an_example_up_to_it(browser, lived_in):
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = signed_in(context, lived_in.url, "admin", "admin")
    received = listen(page)
    page.goto(lived_in.url + PAGES["run-step"])

    page.get_by_role("link", name="Add to dataset, up to this step").click()

    expect(page).to_have_url(re.compile(r"/dataset/\?step=\d+"))
    expect(page.get_by_label("Expected calls")).not_to_be_empty()
    assert received == []
    context.close()
