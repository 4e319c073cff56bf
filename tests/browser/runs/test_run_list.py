"""The list of runs: filters that apply at once, keys, a run beside it, its bars."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.driver.chromium import listen, signed_in
from tests.support.timing import wait_until

pytestmark = pytest.mark.browser


def test_runs_are_filtered_selected_and_read_without_leaving_the_list(
    browser, lived_in
):
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = signed_in(context, lived_in.url, "admin", "admin")
    received = listen(page)
    page.goto(f"{lived_in.url}/runs/")
    rows = page.locator("#run-selection tbody tr")
    count = page.locator(".fopt:has-text('Failed') .num")
    expect(count).to_have_text(re.compile(r"^\d+$"))

    page.locator(".fopt:has-text('Failed') input").check()
    expect(page).to_have_url(f"{lived_in.url}/runs/?status=failed")
    expect(rows).to_have_count(int(count.text_content() or ""))
    with page.expect_response(re.compile(r"/runs/figures/\?.*canceled")):
        page.locator(".fopt:has-text('Canceled') input").check()
    expect(page).to_have_url(f"{lived_in.url}/runs/?status=failed,canceled")
    expect(page.locator("#run-figures")).not_to_contain_text("100.0%")

    for key in ("j", "x", "j", "j", "Shift+X"):
        page.keyboard.press(key)
    expect(rows.locator("td.sel input:checked")).to_have_count(3)
    page.keyboard.press("Space")
    number = rows.nth(2).locator("td.sel input").get_attribute("value")
    expect(page.locator("#run-peek .bar b")).to_have_text(number or "")
    page.click("#run-peek button:has-text('Bad')")
    expect(page.locator("#run-peek [value=bad]")).to_have_attribute(
        "aria-pressed", "true"
    )
    expect(rows.nth(2).locator(".c-rating")).to_contain_text("Bad")
    expect(rows.locator("td.sel input:checked")).to_have_count(3)
    page.click("#run-peek button:has-text('Bad')")
    expect(rows.nth(2).locator(".c-rating")).not_to_contain_text("Bad")
    page.keyboard.press("Escape")
    expect(page.locator("#run-peek")).to_be_hidden()
    rows.nth(2).locator(".c-q a").focus()
    page.keyboard.press("Space")
    expect(page.locator("#run-peek .bar b")).to_have_text(number or "")
    page.keyboard.press("Space")
    expect(page.locator("#run-peek")).to_be_hidden()
    rows.nth(2).locator("td.sel input").focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(rf"/runs/{number}/\?in=status"))
    page.wait_for_load_state()
    page.go_back()

    box = page.locator(".hist").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 20)
    page.mouse.up()
    expect(page).to_have_url(re.compile(r"status=failed,canceled&begin=.+&end=.+"))
    assert received == []
    context.close()


def test_a_time_is_selected_with_the_keyboard(browser, lived_in):
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = signed_in(context, lived_in.url, "admin", "admin")
    received = listen(page)
    page.goto(f"{lived_in.url}/runs/?status=succeeded")
    bars = page.locator(".hist a")
    expect(page.locator(".hist a[tabindex='0']")).to_have_count(1)
    begin, end = (
        bars.nth(at).get_attribute(f"data-{name}")
        for at, name in ((3, "begin"), (5, "end"))
    )

    with page.expect_response(re.compile("/runs/figures/")):
        page.evaluate("htmx.trigger('#run-figures-loader', 'refresh')")
    expect(page.locator(".hist[role=toolbar] a[tabindex='0']")).to_have_count(1)
    page.locator(".hist a[tabindex='0']").focus()
    for key in ("Home", *["ArrowRight"] * 5, "Shift+ArrowLeft", "Shift+ArrowLeft"):
        page.keyboard.press(key)
    expect(bars.nth(3)).to_be_focused()
    width = page.locator(".hist .brush").get_attribute("width") or ""
    assert float(width.rstrip("%")) == pytest.approx(300 / bars.count(), abs=0.1)
    page.keyboard.press("Enter")

    page.wait_for_url(re.compile("begin="))
    asked = parse_qs(urlsplit(page.url).query)
    assert (asked["begin"], asked["end"]) == ([begin], [end])
    assert asked["status"] == ["succeeded"]
    assert received == []
    context.close()


@pytest.mark.slow
def test_a_page_or_all_matching_runs_are_selected(browser, lived_in):
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = signed_in(context, lived_in.url, "admin", "admin")
    received = listen(page)
    page.goto(f"{lived_in.url}/runs/?status=unfinished")
    boxes = page.locator("#run-selection tbody td.sel input")
    count = boxes.count()

    page.click("thead [data-select-page]")
    expect(page.locator("#run-selection tbody td.sel input:checked")).to_have_count(
        count
    )
    expect(page.locator(".bulk .chosen")).to_be_visible()
    everything = page.get_by_label(f"All {count} matching runs")
    everything.check()
    for _ in range(2):  # an update of the list keeps the number and the choice
        page.wait_for_event("response", lambda one: one.url == page.url)
    expect(everything).to_be_checked()
    page.click("#run-more summary")
    page.fill("#chosen-tag", "whole")
    page.wait_for_event("response", lambda one: one.url == page.url)  # leaves it open
    page.press("#chosen-tag", "Enter")
    expect(page.locator("main")).to_contain_text(f"{count} runs")
    with page.expect_response(re.compile("/runs/figures/")):
        page.goto(f"{lived_in.url}/runs/?q=nothing-fits-this")

    assert received == []
    context.close()


@pytest.mark.slow
def test_all_matching_runs_are_selected_only_while_the_page_says_so(browser, lived_in):
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = signed_in(context, lived_in.url, "admin", "admin")
    everything = page.locator("#run-all-matching-box")
    boxes = page.locator("#run-selection tbody td.sel input")

    for leave in (
        lambda: boxes.first.uncheck(),
        lambda: page.keyboard.press("x"),
        lambda: [page.click(".bulk [data-select-page]") for _ in range(2)],
        lambda: page.locator(".fopt:has-text('Failed') input").check(),
    ):
        page.goto(f"{lived_in.url}/runs/")
        boxes.first.check()
        everything.check()
        page.locator("#run-selection tbody .c-q a").first.focus()
        leave()
        expect(everything).not_to_be_checked()
    context.close()


def test_closing_the_run_beside_the_list_leads_back_to_its_row(browser, lived_in):
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(f"{lived_in.url}/runs/?status=failed")
    for key in ("j", "j", "j", " "):
        page.keyboard.press(key)
    close = page.locator("#run-peek [data-peek=close]")
    close.focus()
    page.keyboard.press("Enter")

    expect(page.locator("#run-selection tbody .c-q a").nth(2)).to_be_focused()
    context.close()


@pytest.mark.slow
def test_the_button_for_new_runs_leads_to_the_first_of_them(browser, lived_in):
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = signed_in(context, lived_in.url, "admin", "admin")
    received = listen(page)
    page.goto(f"{lived_in.url}/runs/")
    page.mouse.move(900, 700)
    page.mouse.wheel(0, 600)
    copy = "run.pk = None; run.title = 'New'; run.save()"
    change_latest_run(lived_in, copy)
    button = page.locator(".newcomers")
    expect(button).to_contain_text("1 new run", timeout=30_000)
    button.focus()
    page.keyboard.press("Enter")

    first = page.locator("#run-selection tbody .c-q a").first
    expect(first).to_have_text("New")
    expect(first).to_be_focused()
    expect(first).to_be_in_viewport()
    assert received == []
    change_latest_run(lived_in, "run.delete()")
    context.close()


@pytest.mark.slow
def test_a_late_update_of_the_list_does_not_undo_a_filter(browser, lived_in):
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(f"{lived_in.url}/runs/")
    rows = page.locator("#run-selection tbody tr")
    whole, held = rows.count(), []
    address = re.compile(r"/runs/$")
    page.route(address, lambda route: held.append(route))
    wait_until(lambda: page.wait_for_timeout(100) or held, seconds=30)

    page.locator(".fopt:has-text('Failed') input").check()
    expect(rows).not_to_have_count(whole)
    filtered = rows.count()
    page.unroute(address)
    for route in held:
        route.fallback()
    page.wait_for_timeout(1_000)

    assert (rows.count(), page.url) == (filtered, f"{lived_in.url}/runs/?status=failed")
    context.close()


@pytest.mark.parametrize("width", [390, 1024, 1440])
@pytest.mark.slow
def test_the_actions_of_selected_runs_are_one_row_of_words(browser, lived_in, width):
    context = browser.new_context(viewport={"width": width, "height": 900})
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(f"{lived_in.url}/runs/")
    bar = page.locator("#run-selection .bulk")
    page.locator(".sel input[data-unfinished]").first.check()
    page.locator(".sel input[data-resumable]").first.check()

    expect(bar).to_contain_text("selected")
    assert bar.bounding_box()["height"] < 60
    if width > 390:  # and beside a run, if there is room for one
        page.locator(".runtab .c-q a").first.focus()
        page.keyboard.press("Space")
        expect(page.locator("#run-peek")).to_be_visible()
        assert bar.bounding_box()["height"] < 60
        page.locator(".runtab thead .c-cost a").click(trial=True)
    page.click("#run-more summary")
    for button in bar.locator("button:visible:not([type=reset])").all():
        assert button.inner_text().strip()
    for do in ("again", "dataset", "queue", "tag", "keep", "resume", "stop", "delete"):
        expect(bar.locator(f"button[value={do}]:visible")).to_have_count(1)
    context.close()


def test_a_run_that_is_selected_at_the_end_of_the_list_stays_in_sight(
    browser, lived_in
):
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(f"{lived_in.url}/runs/?status=succeeded")
    bottom = page.locator("#run-pager").bounding_box()["y"]
    boxes = page.locator("#run-selection td.sel input").all()
    last = [box for box in boxes if box.bounding_box()["y"] + 20 < bottom][-1]

    last.check()

    bar = page.locator("#run-selection .bulk").bounding_box()
    assert last.bounding_box()["y"] + 20 < bar["y"]
    context.close()


def change_latest_run(site, change):
    """Run Python on the newest run that the list shows."""
    latest = "from runs.models import Run; run = Run.objects.filter(is_test=False)"
    site.manage("shell", "-c", f"{latest}.latest('pk'); {change}")


@pytest.mark.parametrize("width", [1440, 390, 320])
def test_the_menus_of_the_list_lie_within_the_window(browser, lived_in, width):
    context = browser.new_context(viewport={"width": width, "height": 900})
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(f"{lived_in.url}/runs/?status=failed")
    menus = page.locator("#run-list-head details.menu")

    for menu in menus.all():
        menu.locator("summary").click()
        box = menu.locator("> :not(summary)").bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width

    assert menus.count() == 2
