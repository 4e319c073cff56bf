"""Managing tools in Chromium: every size and theme, and without a script."""

import json
import re

import pytest
from playwright.sync_api import Route, expect

from tests.browser.driver.axe import violations
from tests.browser.driver.chromium import listen, overflow, signed_in
from tests.browser.driver.editor import OPTIONS, open_editor
from tests.browser.shots import SIZES
from tests.support.timing import wait_until

pytestmark = pytest.mark.browser
FORMS = ("form", "json")


def test_a_tool_is_made_and_tried_without_a_script(browser, lived_in):
    context = browser.new_context(java_script_enabled=False)
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(f"{lived_in.url}/tools/")
    page.click("text=New tool")
    page.click("a[href$='/new/python/']")
    page.fill("[name=name]", "double")
    page.fill("[name=code]", "x * 2")
    page.click("text=Define arguments")
    page.fill("#schema-0-name", "x")
    page.select_option("#schema-0-type", "integer")
    page.click("[value=add]")
    page.fill("#schema-1-name", "y")
    page.click("[value=up-1]")
    assert page.input_value("#schema-0-name") == "y"
    page.click("[value=remove-0]")
    page.click(".savebar .primary")

    page.fill("[name=arg-x]", "21")
    page.click("[data-call]")

    assert page.inner_text("#tool-result-text") == "42"
    context.close()


@pytest.mark.slow
def test_typed_values_are_tried_without_a_script(browser, lived_in):
    """Before a tool is saved, and after it has been changed."""
    context = browser.new_context(java_script_enabled=False)
    page = signed_in(context, lived_in.url, "admin", "admin")
    code, x = page.locator("[name=code]"), page.locator("[name=arg-x]")
    page.goto(f"{lived_in.url}/tools/new/python/")
    code.fill("x * 3")
    page.click("text=Define arguments")
    page.fill("#schema-0-name", "x")
    page.select_option("#schema-0-type", "integer")
    page.click("[data-preview]")
    x.fill("14")
    x.press("Enter")
    expect(page.locator("#tool-preview")).to_contain_text("Nothing was sent.")
    page.click("[data-call]")
    expect(page.locator("#tool-result-text")).to_have_text("42")
    expect(code).to_have_value("x * 3")
    expect(page.locator("[name=name]")).to_have_value("")
    page.click("#tool-arguments-json")
    code.fill("x * 5")
    page.fill("[name=arguments-json]", '{"x": 20}')
    page.click("[data-call]")
    expect(page.locator("#tool-result-text")).to_have_text("100")
    page.goto(f"{lived_in.url}/tools/?q=new_tool")
    expect(page.get_by_text("No matching tools")).to_be_visible()

    page.goto(f"{lived_in.url}/tools/double/")
    saved = code.input_value()
    code.fill("x * 7")
    x.fill("6")
    page.click("[data-call]")
    expect(page.locator("#tool-result-text")).to_have_text("42")
    expect(code).to_have_value("x * 7")
    page.click("#tool-trials [name=trial] >> nth=0")
    expect(x).to_have_value("6")
    expect(code).to_have_value("x * 7")
    page.goto(f"{lived_in.url}/tools/double/")
    expect(code).to_have_value(saved)
    context.close()


def test_arguments_are_not_part_of_the_form_with_a_script(browser, lived_in):
    context = browser.new_context()
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(f"{lived_in.url}/tools/double/")
    page.fill("[name=arg-x]", "21")

    expect(page.locator("#tool-form [data-unsaved]")).to_be_hidden()
    page.press("[name=arg-x]", "Enter")

    expect(page.locator("#tool-result-text")).to_have_text("42")
    expect(page).to_have_url(f"{lived_in.url}/tools/double/")
    context.close()


@pytest.mark.slow
def test_a_large_document_is_pasted(browser, lived_in):
    context = browser.new_context()
    page = signed_in(context, lived_in.url, "admin", "admin")
    received = listen(page)
    page.goto(f"{lived_in.url}/admin/tools/tool/import/")
    info = {"title": "Large", "version": "1", "description": "long " * 1_000_000}
    paths = {"/orders": {"get": {"operationId": "listOrders"}}}
    servers = [{"url": "https://a.example"}]
    text = {"openapi": "3.1.0", "info": info, "servers": servers, "paths": paths}
    page.evaluate(
        "text => { document.querySelector('[name=document]').value = text }",
        json.dumps(text),
    )

    page.click("text=Show operations")

    expect(page.locator("#openapi-choice")).to_contain_text("listOrders")
    assert received == []
    context.close()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.slow
def test_arguments_are_edited_as_one_types(browser, lived_in, size, theme):
    width, height = SIZES[size]
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=theme
    )
    page = signed_in(context, lived_in.url, "admin", "admin")
    received = listen(page)
    page.goto(f"{lived_in.url}/admin/tools/tool/add/?kind=python")
    page.fill("[name=name]", "kept")
    page.click("text=Define arguments")
    expect(page.locator("#schema-0-name")).to_be_focused()
    page.keyboard.type("limit")
    page.select_option("#schema-0-type", "integer")
    page.click("text=Default, allowed values, limits and more")
    page.fill("#schema-0-default", "many")
    says = page.locator("#tool-schema-says")
    expect(says).to_contain_text("default value “many” is not valid JSON")
    expect(page.locator("#schema-0-default")).to_be_focused()
    page.fill("#schema-0-default", "5")
    expect(says).to_have_text("")
    page.click("text=Add argument")
    page.fill("#schema-1-name", "status")
    page.click("[value=up-1]")
    expect(page.locator("#schema-0-name")).to_have_value("status")
    expect(page.locator("[value=up-0]")).to_be_focused()
    wide, said = overflow(page), list(received)
    broken = [one for one in violations(page) if "schema" in one]
    page.click("text=Edit as JSON")
    text = page.input_value("[name=args_schema]")
    assert page.input_value("[name=name]") == "kept"
    context.close()

    assert [*json.loads(text)["properties"]] == ["status", "limit"]
    assert (wide, said, broken) == (0, [], [])


@pytest.mark.slow
def test_the_body_of_a_request_is_checked_as_one_types(browser, lived_in):
    context = browser.new_context()
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(f"{lived_in.url}/admin/tools/tool/add/?kind=http")
    expect(page.locator("[name=json_fields]")).to_be_hidden()
    page.select_option("[name=body_kind]", "fields")
    expect(page.locator("[name=json_fields]")).to_be_visible()
    page.select_option("[name=body_kind]", "json")
    expect(page.locator("[name=json_fields]")).to_be_hidden()
    page.fill("[name=json_body]", '{"q": 1,\n "r" 2}')

    says = page.locator("#tool-json-says")
    expect(says).to_contain_text("Line 2, column 6: a colon is missing after the name.")
    page.fill("[name=json_body]", '{"q": 1}')
    expect(says).to_have_text("")
    context.close()


def test_a_url_typed_before_the_script_has_loaded_declares_arguments(browser, lived_in):
    context = browser.new_context()
    page = signed_in(context, lived_in.url, "admin", "admin")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route(re.compile(r"/tools/tool(\.\w+)?\.js"), hold)
    page.goto(f"{lived_in.url}/tools/new/http/", wait_until="commit")
    page.fill("[name=url]", "http://127.0.0.1:9/orders/{order_id}")
    wait_until(lambda: held or page.wait_for_timeout(50))

    held[0].continue_()

    expect(page.locator(".schema-name input").first).to_have_value("order_id")
    context.close()


@pytest.mark.slow
def test_a_new_tool_is_tried_before_it_is_saved(browser, lived_in):
    """In five clicks, with the values as they are typed."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = signed_in(context, lived_in.url, "admin", "admin")
    received = listen(page)
    page.goto(f"{lived_in.url}/tools/")
    page.click("text=New tool")
    page.click("a[href$='/new/http/']")
    page.fill("[name=url]", "http://127.0.0.1:9/orders/{order_id}")
    page.fill("[name=arg-order_id]", "o_1")
    page.click("[data-call]")
    expect(page.locator("#tool-result")).to_contain_text("127.0.0.1")
    expect(page.locator(".when-unsaved")).to_be_visible()

    page.select_option("[name=method]", "DELETE")
    page.click("#tool-group-effect [value=side_effect]")
    page.click("[data-call]")
    expect(page.locator("[data-confirm]")).to_be_focused()
    expect(page.locator("#tool-preview")).to_contain_text("DELETE http://127.0.0.1:9/")
    assert violations(page) == []

    page.fill("[name=name]", "get_order")
    page.keyboard.press("Control+s")
    page.wait_for_url("**/tools/get_order/")
    expect(page.locator(".savebar")).to_be_hidden()
    page.fill("[name=description]", "Looks up an order.")
    expect(page.locator(".savebar")).to_contain_text("Unsaved changes: Description")
    expect(page.locator("#tool-group-model .edited").first).to_be_visible()
    page.once("dialog", lambda dialog: dialog.accept())
    with page.expect_event("dialog"):
        page.click("text=Discard")
    expect(page.locator("[name=description]")).to_have_value("")
    assert (received, overflow(page)) == ([], 0)
    context.close()


SHOP = json.dumps(
    {
        "openapi": "3.1.0",
        "info": {"title": "Shop"},
        "servers": [{"url": "https://shop.example"}],
        "paths": {
            "/orders": {
                "get": {
                    "tags": ["orders"],
                    "summary": "List orders",
                    "parameters": [{"name": "sid", "in": "cookie"}],
                },
                "delete": {"tags": ["orders"], "summary": "Delete all orders"},
            },
            "/users": {
                "get": {"tags": ["users"], "summary": "List users"},
                "put": {"requestBody": {"content": {"image/png": {}}}},
            },
        },
    }
)


def test_operations_of_a_document_are_filtered_and_selected(browser, lived_in):
    context = browser.new_context()
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(f"{lived_in.url}/admin/tools/tool/import/")
    page.fill("[name=document]", SHOP)
    page.click("text=Show operations")
    expect(page).to_have_url(re.compile(r"/import/\d+/$"))
    address, selected = page.url, page.locator("[data-selected]")
    rows = page.locator("tr[data-find]:visible")
    expect(rows).to_have_count(4)

    search = page.locator("#openapi-choice [name=q]")
    search.fill("list")
    expect(rows).to_have_count(2)
    search.press("Enter")
    page.select_option("[name=tag]", "orders")
    expect(rows).to_have_count(1)
    page.click("text=Select all")
    expect(selected).to_have_text("1")
    search.fill("")
    page.select_option("[name=tag]", "")
    page.click("text=Select all")
    expect(selected).to_have_text("3")
    page.click("text=Clear selection")
    expect(selected).to_have_text("0")
    page.check("[value='DELETE /orders']")
    assert (page.url, overflow(page)) == (address, 0)
    page.click("text=Create selected tools")

    expect(page.locator("#content-main")).to_contain_text("delete__orders")


@pytest.mark.slow
def test_python_code_has_an_editor_that_marks_the_failed_line(browser, lived_in):
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = signed_in(context, lived_in.url, "admin", "admin")
    received = listen(page)
    page.goto(f"{lived_in.url}/admin/tools/tool/add/?kind=python")
    page.fill("[name=name]", "halves")
    expect(page.locator(".editor-lines .string").first).to_be_visible()

    area = open_editor(page.locator(".editor"))
    editor = page.locator(".editor")
    page.keyboard.press("Control+a")
    page.keyboard.type("if input:\nx = = 1")
    page.keyboard.press("Control+s")
    expect(page.locator(".errorlist")).to_contain_text("Line 2: invalid syntax.")
    expect(editor.locator(".wrong")).to_have_text("    x = = 1")

    area.click()
    page.keyboard.press("Control+a")
    page.keyboard.type("x = 0")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")
    page.keyboard.type("1 / x")
    assert page.input_value("[name=code]") == "x = 0\n1 / x"
    page.keyboard.press("Escape")  # closes the list of completions, if any
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    expect(area).not_to_be_focused()
    page.keyboard.press("Control+s")
    page.wait_for_url(lambda url: "/change/" in url)

    page.goto(f"{lived_in.url}/tools/halves/")
    open_editor(page.locator(".editor"))
    page.keyboard.press("Control+Home")
    page.keyboard.type("inp")
    page.click(f"{OPTIONS} li:has-text('input')")
    page.keyboard.press("Enter")
    page.keyboard.press("Control+Enter")
    expect(editor.locator(".wrong")).to_have_text("1 / x")
    expect(editor.locator("footer .problem")).to_have_text(
        "Line 3: ZeroDivisionError: division by zero"
    )
    expect(page.locator("#tool-result-error")).to_contain_text("Line 3  1 / x")
    assert violations(page) == []
    page.click("#tool-result-error a")
    expect(area).to_be_focused()
    page.keyboard.type("2 + ")
    assert page.input_value("[name=code]") == "input\nx = 0\n2 + 1 / x"
    page.evaluate("document.querySelector('#tool-form').removeAttribute('data-guard')")
    page.once("dialog", lambda dialog: dialog.accept())
    assert overflow(page) == 0
    assert received == []
    context.close()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.slow
def test_stop_ends_a_running_try(browser, lived_in, size):
    width, height = SIZES[size]
    context = browser.new_context(viewport={"width": width, "height": height})
    page = signed_in(context, lived_in.url, "admin", "admin")
    received = listen(page)
    page.goto(f"{lived_in.url}/tools/new/python/")
    page.fill("[name=name]", f"endless_{size}")
    text = open_editor(page.locator(".editor"))
    page.keyboard.press("Control+a")
    page.keyboard.type("while True: pass")
    expect(text).to_have_value("while True: pass")
    page.keyboard.press("Control+s")
    page.wait_for_url(lambda url: "/new/" not in url)
    stop = page.locator("[data-stop]")
    expect(stop).to_be_hidden()

    page.keyboard.press("Control+Enter")
    expect(stop).to_be_visible()
    expect(page.locator("[data-call]")).to_be_in_viewport(ratio=1)
    stop.click()

    expect(page.locator("[data-canceled]")).to_have_text("Canceled")
    expect(stop).to_be_hidden()
    expect(page.locator("[data-call]")).to_be_focused()
    rows = page.locator("#tool-trials li")
    canceled = rows.locator("[data-status=canceled]")
    refresh = page.locator("[data-refresh]")
    wait_until(  # the page itself refreshes the list once, after a second
        lambda: (
            canceled.count()
            or page.wait_for_timeout(1_500)
            or refresh.dispatch_event("tool:arguments")
        )
    )
    expect(canceled).to_be_visible()
    expect(rows).to_have_count(1)
    expect(page.locator("[data-canceled]")).to_have_text("Canceled")
    assert violations(page) == []
    assert overflow(page) == 0
    assert received == []
    context.close()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.slow
def test_a_call_that_the_server_does_not_get_says_so(browser, lived_in, size):
    width, height = SIZES[size]
    context = browser.new_context(viewport={"width": width, "height": height})
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(f"{lived_in.url}/tools/double/")
    if (tab := page.locator(".views [data-view='2']")).is_visible():
        tab.click()
    page.fill("[name=arg-x]", "21")
    alert = page.locator("#part-toasts [role=alert]")
    expect(alert).to_be_empty()

    context.set_offline(True)
    page.click("[data-call]")
    expect(alert).to_contain_text("The server cannot be reached.")
    assert violations(page) == []
    context.set_offline(False)
    page.route("**/try/", lambda route: route.fulfill(status=502))
    page.click("[data-call]")
    expect(alert).to_contain_text("The server answered with error 502.")
    alert.locator("[data-dismiss]").click()
    expect(alert).to_be_empty()
    page.unroute("**/try/")
    page.click("[data-call]")

    expect(page.locator("#tool-result-text")).to_have_text("42")
    assert page.input_value("[name=arg-x]") == "21"
    context.close()


def test_a_switch_keeps_the_focus_and_says_what_it_did(browser, lived_in):
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = signed_in(context, lived_in.url, "admin", "admin")
    received = listen(page)
    page.goto(f"{lived_in.url}/tools/double/")
    switch, spoken = (
        page.get_by_role("switch"),
        page.locator("#tool-switch [role=status]"),
    )
    expect(spoken).to_be_empty()
    switch.focus()

    for words, is_on in (("Tool disabled", "false"), ("Tool enabled", "true")):
        page.keyboard.press("Space")
        expect(spoken).to_have_text(words)
        expect(switch).to_have_attribute("aria-checked", is_on)
        expect(switch).to_be_focused()

    assert violations(page) == []
    assert received == []
    context.close()


def test_the_arguments_follow_the_form_without_a_call(browser, lived_in):
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(f"{lived_in.url}/tools/new/python/")
    page.fill("[name=name]", "never_called")
    open_editor(page.locator(".editor"))
    page.keyboard.press("Control+a")
    page.keyboard.type("'called'")
    page.click("text=Define arguments")
    page.fill("#schema-0-name", "city")

    expect(page.locator("[name=arg-city]")).to_be_visible()

    assert page.locator("#tool-result, [role=alert]:not(:empty)").count() == 0
    context.close()


@pytest.mark.parametrize("size", SIZES)
def test_arguments_are_typed_as_fields_and_as_json(browser, lived_in, size):
    width, height = SIZES[size]
    context = browser.new_context(viewport={"width": width, "height": height})
    page = signed_in(context, lived_in.url, "admin", "admin")
    received = listen(page)
    page.goto(f"{lived_in.url}/tools/double/")
    if (tab := page.locator(".views [data-view='2']")).is_visible():
        tab.click()
    to_form, to_json = (page.locator(f"#tool-arguments-{one}") for one in FORMS)
    text, field = page.locator("[name=arguments-json]"), page.locator("[name=arg-x]")
    field.fill("21")

    to_json.focus()
    page.keyboard.press("Enter")
    expect(text).to_have_value('{\n  "x": 21\n}')
    expect(to_json).to_be_focused()
    expect(to_json).to_have_attribute("aria-current", "true")
    text.fill('{"x": }')
    to_form.click()
    expect(page.locator(".field.errors")).to_contain_text("Line 1, column 7")
    assert violations(page) == []
    assert overflow(page) == 0
    text.fill('{"x": 4}')
    page.keyboard.press("Control+Enter")
    expect(page.locator("#tool-result-text")).to_have_text("8")
    expect(text).to_have_value('{"x": 4}')

    to_form.click()
    expect(field).to_have_value("4")
    expect(page.locator("#tool-result")).to_have_count(0)
    assert received == []
    context.close()


def test_arguments_are_typed_as_json_without_a_script(browser, lived_in):
    context = browser.new_context(java_script_enabled=False)
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(f"{lived_in.url}/tools/double/")
    page.fill("[name=arg-x]", "21")

    page.click("#tool-arguments-json")
    assert '"x": 21' in page.input_value("[name=arguments-json]")
    page.click("[data-call]")

    assert page.inner_text("#tool-result-text") == "42"
    context.close()


def test_arguments_of_a_test_stay_when_the_tool_is_saved(browser, lived_in):
    context = browser.new_context(viewport={"width": 1024, "height": 768})
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(f"{lived_in.url}/tools/city_forecast/")
    city = page.locator("#tool-try [name=arg-city]")
    expect(city).to_be_hidden()
    page.keyboard.press("Control+Enter")  # opens the tab of the test
    expect(city).to_be_visible()
    city.fill("Oslo")
    page.click(".views a:has-text('Form')")
    page.fill("[name=description]", "The forecast of a city for the next two days.")

    page.keyboard.press("Control+s")

    expect(page.locator("#part-toasts")).to_contain_text("Saved city_forecast.")
    expect(city).to_have_value("Oslo")
    context.close()


@pytest.mark.slow
def test_a_refused_save_keeps_the_arguments_and_the_result(browser, lived_in):
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(f"{lived_in.url}/tools/new/python/")
    page.fill(
        "[name=code]", "def shout(text: str, mark: str = '!'):\n    return text + mark"
    )
    page.fill("[name=arg-text]", "Oslo")
    page.fill("[name=arg-mark]", "?")
    page.click("[data-call]")
    expect(page.locator("#tool-result-text")).to_have_text("Oslo?")

    page.click(".savebar .primary")  # without a name

    expect(page.locator("#part-mistakes")).to_be_visible()
    expect(page.locator("[name=arg-text]")).to_have_value("Oslo")
    expect(page.locator("[name=arg-mark]")).to_have_value("?")
    expect(page.locator("#tool-result-text")).to_have_text("Oslo?")
    context.close()


def test_each_result_opens_with_one_of_its_tabs(browser, lived_in):
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(f"{lived_in.url}/tools/new/python/")

    for number, code in enumerate(["'rain'", "{'rain': 1}", "'rain'"], start=1):
        page.fill("[name=code]", code)
        page.click("[data-call]")
        expect(page.locator("#tool-trials [name=trial]")).to_have_count(number)
        expect(page.locator("[name=result-part]:checked")).to_have_count(1)
        expect(page.locator("#tool-result .codebox:visible")).to_have_count(1)
    context.close()


def test_a_search_selects_no_other_tools(browser, lived_in):
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(f"{lived_in.url}/tools/")
    boxes = page.locator("tbody td.sel input")
    for number in (0, 1):
        boxes.nth(number).check()
    page.fill("#tool-filters input[type=search]", "send")
    expect(page.locator("tbody tr:has-text('book_table')")).to_have_count(0)
    expect(page.locator("tbody tr:has-text('send_email')")).to_have_count(1)

    assert page.locator("tbody td.sel input:checked").count() == 0
    context.close()
