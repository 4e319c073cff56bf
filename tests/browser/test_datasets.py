"""Filling a dataset: a file that is dropped on the page, and a step of a run."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.driver.chromium import listen, signed_in
from tests.browser.shots import PAGES

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


def test_a_dropped_file_is_previewed_and_imported(browser, lived_in):
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = signed_in(context, lived_in.url, "admin", "admin")
    received = listen(page)
    page.goto(f"{lived_in.url}/datasets/new/")
    page.get_by_label("Name", exact=True).fill("Dropped")
    page.get_by_role("button", name="Create").click()
    page.wait_for_url(re.compile(r"/datasets/\d+/$"))

    is_marked = page.evaluate(DROP, "question,answer\nIs it open?,Yes\nWhere?,Here\n")

    assert is_marked
    preview = page.locator("#dataset-import")
    expect(preview).to_contain_text("more.csv")
    expect(preview).to_contain_text("2 new examples")
    preview.get_by_role("button", name=re.compile("^Import")).click()
    expect(page.locator(".dstab tbody tr")).to_have_count(2)
    assert received == []
    context.close()


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
