"""Every page in Chromium: no errors, nothing cut off, nothing from elsewhere."""

from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from tests.browser.chromium import listen, overflow, seen_by, signed_in, widest
from tests.browser.moves import CLICKED, MOVES
from tests.browser.shots import NEWCOMERS, PAGES, SIZES, STRANGERS, opening

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("is_of_runs", [True, False], ids=["runs", "others"])
def test_each_page_fits_and_breaks_no_rule(browser, lived_in, size, is_of_runs):
    width, height = SIZES[size]
    context = browser.new_context(viewport={"width": width, "height": height})
    page = signed_in(context, lived_in.url, "admin", "admin")
    heard, hosts, wide = listen(page), set(), {}
    page.on("request", lambda request: hosts.add(request.url.split("/")[2]))

    for name, path in PAGES.items():
        if name.startswith("run") is is_of_runs:
            page.goto(lived_in.url + path, wait_until="load")
            wide[name] = widest(page)

    context.close()
    assert {name: by for name, by in wide.items() if by > 0} == {}
    assert [line for line in heard if "/no/such/page/" not in line] == []
    assert hosts == {lived_in.url.split("/")[2]}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("person", "moves"),
    [
        pytest.param("nia", opening(NEWCOMERS), id="newcomer"),
        pytest.param("", opening(STRANGERS), id="stranger"),
    ],
)
def test_what_is_seldom_seen_fits_too(browser, lived_in, person, moves, size):
    width, height = SIZES[size]
    context = browser.new_context(viewport={"width": width, "height": height})
    page, wide = seen_by(context, lived_in.url, person), {}
    heard, hosts = listen(page), set()
    page.on("request", lambda request: hosts.add(request.url.split("/")[2]))

    for name, move in moves.items():
        move(page, lived_in)
        wide[name] = overflow(page)

    context.close()
    assert {name: by for name, by in wide.items() if by > 0} == {}
    assert [line for line in heard if not is_meant(line)] == []
    assert hosts == {lived_in.url.split("/")[2]}


def test_what_one_clicks_open_fits_and_breaks_no_rule(browser, lived_in):
    context = browser.new_context(viewport={"width": 390, "height": 844})
    page, wide = signed_in(context, lived_in.url, "admin", "admin"), {}
    heard, hosts = listen(page), set()
    page.on("request", lambda request: hosts.add(request.url.split("/")[2]))

    for name in CLICKED:
        MOVES[name](page, lived_in)
        wide[name] = overflow(page)

    context.close()
    assert {name: by for name, by in wide.items() if by > 0} == {}
    assert [line for line in heard if not is_meant(line)] == []
    assert hosts == {lived_in.url.split("/")[2]}


@pytest.mark.parametrize(
    ("path", "tab"),
    [
        pytest.param("/runs/?status=cancelled", "", id="of a page"),
        pytest.param("/runs/9002/?step=1", "tab=response", id="of a part"),
    ],
)
def test_the_chosen_tab_is_in_sight(browser, lived_in, path, tab):
    context = browser.new_context(viewport={"width": 320, "height": 844})
    page = signed_in(context, lived_in.url, "admin", "admin")

    page.goto(lived_in.url + path)
    if tab:
        page.locator(f".tabs [href*='{tab}']").evaluate("tab => tab.click()")
        page.wait_for_url(f"**{tab}")

    page.wait_for_function(CHOSEN_IS_IN_SIGHT)
    context.close()


CHOSEN_IS_IN_SIGHT = """() => {
    const row = document.querySelector(".tabs"), box = row.getBoundingClientRect();
    const tab = row.querySelector("[aria-current]").getBoundingClientRect();
    return row.scrollLeft > 0 && tab.left >= box.left && tab.right <= box.right;
}"""


def is_meant(line: str) -> bool:
    """Whether the browser says no more than that a page is closed, gone or a button."""
    return any(f"status of {code}" in line for code in (403, 404, 405))


def test_dark_is_dark_and_the_choice_stays(browser, lived_in):
    context = browser.new_context(color_scheme="light")
    page = signed_in(context, lived_in.url, "mara", "secret")
    ground = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(ground)

    page.click("summary[title='Light or dark']")
    with page.expect_response("**/preferences/theme/"):
        page.click("button[value=dark]")
    at_once = page.evaluate(ground)
    page.reload()

    assert before != at_once
    assert page.evaluate(ground) == at_once
    assert page.get_attribute("html", "data-theme") == "dark"
    context.close()


def test_the_theme_can_be_chosen_without_a_script(browser, lived_in):
    context = browser.new_context(java_script_enabled=False)
    page = signed_in(context, lived_in.url, "mara", "secret")

    page.click("summary[title='Light or dark']")
    page.click("button[value=light]")

    assert page.get_attribute("html", "data-theme") == "light"
    context.close()


def test_a_slash_leads_to_the_search(browser, lived_in):
    context = browser.new_context()
    page = signed_in(context, lived_in.url, "admin", "admin")

    page.keyboard.press("/")
    page.keyboard.type("payouts")
    page.keyboard.press("Enter")

    page.wait_for_url("**/runs/?q=payouts")
    assert page.locator("#run-list tbody tr").count() > 0
    context.close()


def test_times_are_in_the_viewers_zone(browser, lived_in):
    context = browser.new_context(timezone_id="Asia/Shanghai")
    page = signed_in(context, lived_in.url, "admin", "admin")

    page.goto(f"{lived_in.url}/runs/?status=succeeded")
    time = page.locator("#run-list time").first

    utc = page.evaluate(
        "e => new Date(e.dateTime).getUTCHours()", time.element_handle()
    )
    assert f" {(utc + 8) % 24:02}:" in (time.get_attribute("title") or "")
    context.close()


@pytest.mark.parametrize(
    ("status", "offered"),
    [
        pytest.param("succeeded", {"stop": False, "delete": True}, id="over"),
        pytest.param("unfinished", {"stop": True, "delete": False}, id="unfinished"),
    ],
)
def test_the_chosen_runs_are_offered_what_can_be_done(
    browser, lived_in, status, offered
):
    context = browser.new_context()
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(f"{lived_in.url}/runs/?status={status}")

    page.locator("#run-choices .sel input").first.check()

    buttons = {do: page.locator(f".bulk [value={do}]") for do in offered}
    assert {do: button.is_visible() for do, button in buttons.items()} == offered
    assert page.locator(".bulk [value=again]").is_visible()
    context.close()


def test_the_seed_is_a_true_list(browser, lived_in):
    context = browser.new_context()
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(f"{lived_in.url}/runs/")

    cells = page.locator("#run-choices td.c-t time").all()
    begun = [datetime.fromisoformat(cell.get_attribute("datetime")) for cell in cells]

    late = [(a, b) for a, b in pairwise(begun) if b - a > timedelta(minutes=5)]
    assert late == []
    context.close()
