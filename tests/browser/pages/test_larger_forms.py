"""Forms in Chromium: nothing typed is lost, and the console stays empty."""

import pytest
from playwright.sync_api import expect

from tests.browser.driver.chromium import listen, signed_in
from tests.browser.driver.leaving import leave, leave_and_stay

pytestmark = pytest.mark.browser


def test_a_resized_field_is_swapped_without_a_console_error(browser, lived_in):
    context = browser.new_context()
    page = signed_in(context, lived_in.url, "admin", "admin")
    received = listen(page)
    page.goto(f"{lived_in.url}/agents/1/edit/?try=side")
    field = page.locator("#agent-side textarea").first
    field.evaluate("field => { field.style.height = '200px' }")

    page.click("#agent-try nav a:has-text('Compare')")

    expect(field).not_to_have_attribute("style", "height: 200px;")
    assert received == []
    context.close()


@pytest.mark.parametrize(
    ("form", "field"),
    [
        pytest.param("agents/new/", "[name=description]", id="new-agent"),
        pytest.param("prompts/new/", "[name=name]", id="prompt"),
        pytest.param("providers/new/", "[name=base_url]", id="provider"),
        pytest.param("webhooks/new/", "[name=url]", id="webhook"),
        pytest.param("schedules/new/?agent=1", "[name=name]", id="schedule"),
        pytest.param("agents/1/tools/1/", "[name=description]", id="agent-tool"),
        pytest.param("agents/1/gate/", "[name=must_pass_tag]", id="gate"),
        pytest.param("account/notifications/", "[name=email]", id="notifications"),
        pytest.param("admin/tools/tool/1/change/", "[name=description]", id="admin"),
        pytest.param("tools/city_forecast/", "[name=description]", id="tool"),
    ],
)
def test_leaving_a_form_with_unsaved_changes_asks(browser, lived_in, form, field):
    context = browser.new_context()
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(f"{lived_in.url}/{form}")
    old = page.input_value(field)

    page.fill(field, "typed and not saved")
    page.keyboard.type("!")
    leave_and_stay(page)
    assert page.input_value(field) == "typed and not saved!"
    page.fill(field, old)
    asked = leave(page)
    page.wait_for_url(lambda url: form not in url)
    assert asked == []
    context.close()


def test_ctrl_s_saves_a_tool_and_the_bar_names_what_is_unsaved(browser, lived_in):
    context = browser.new_context(viewport={"width": 1440, "height": 700})
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(f"{lived_in.url}/admin/tools/tool/1/change/")
    bar, message = page.locator(".savebar"), page.locator("[name=description]")
    expect(bar).to_be_in_viewport()
    expect(bar.locator("[data-unsaved]")).to_be_hidden()
    old = message.input_value()

    message.fill("What the model reads")
    expect(bar).to_contain_text("Unsaved changes: Description")
    page.keyboard.press("Control+s")

    expect(page.locator("#part-toasts")).to_contain_text("changed successfully")
    assert "/change/" in page.url
    assert message.input_value() == "What the model reads"
    message.fill(old)
    page.keyboard.press("Control+s")
    expect(message).to_have_value(old)
    context.close()


def test_a_refused_form_counts_as_unsaved(browser, lived_in):
    context = browser.new_context()
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(f"{lived_in.url}/admin/tools/tool/add/?kind=http")
    page.fill("[name=name]", "only-a-name")

    page.keyboard.press("Control+s")
    expect(page.locator("#part-mistakes")).to_be_visible()
    page.wait_for_load_state()

    page.click("h1")
    leave_and_stay(page)
    context.close()
