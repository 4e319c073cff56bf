"""An agent of one's own, from the empty form to a real run."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.driver.chromium import keep_session, listen, overflow, resume_session
from tests.browser.driver.editor import open_editor

pytestmark = pytest.mark.browser

SECONDS = 40_000


def enter(browser, site, **options):
    """Return an empty page, signed in by a login link or as in an earlier test."""
    context = browser.new_context(**options)
    page = context.new_page()
    if resume_session(context, site.url, "admin"):
        return page
    link = site.manage("login_link", "admin").strip().split()[-1]
    page.goto(f"{site.url}/login/{link.split('/login/')[1]}")
    page.click("button:has-text('Sign in')")
    page.wait_for_url(f"{site.url}/")
    keep_session(page, site.url, "admin")
    return page


def test_builds_an_agent_tests_publishes_and_runs_it(browser, first_start):
    page = enter(browser, first_start, viewport={"width": 1440, "height": 1000})
    received = listen(page)
    page.goto(f"{first_start.url}/agents/new/")

    page.fill("input[name=name]", "city-guide")
    open_editor(page.locator(".editor"))
    page.keyboard.type("You know everything about {ci")
    page.keyboard.type("ty}.")
    expect(page.locator("#agent-preview-body .vars")).to_contain_text(
        "city", timeout=SECONDS
    )
    page.click("a:has-text('Add tools and agents')")
    page.locator("#agent-library tr", has_text="weather_sample").first.locator(
        "select"
    ).select_option("Never ask")
    page.click("#agent-library button:has-text('Done')")
    page.locator("#agent-form button:has-text('Create')").click()
    page.wait_for_url(re.compile(r"/agents/\d+/edit/$"))

    page.fill("textarea[name=input]", "根据北京的天气情况,制定一个出游计划")
    page.fill("textarea[name=in-city]", "北京")
    page.click("#agent-test-form button:has-text('Send')")
    answer = page.locator("#agent-try .answer")
    expect(answer.locator(".prose h1")).to_contain_text("北京", timeout=SECONDS)
    answer.locator("summary").click()
    expect(answer.locator("ol")).to_contain_text("weather")

    page.click("summary:has-text('Publish version 1')")
    page.fill("#publish-note", "the first one")
    page.click("#agent-publish button:has-text('Publish')")
    expect(page.locator("#part-toasts")).to_contain_text(
        "Version 1 published", timeout=SECONDS
    )
    page.fill("textarea[name=input]", "Plan a day out")
    page.fill("textarea[name=in-city]", "Oslo")
    page.click("#agent-run-form button:has-text('Run')")
    page.wait_for_url("**/runs/*/")
    expect(page.locator("#run-header, #run-progress").first).to_contain_text(
        "Succeeded", timeout=SECONDS
    )
    assert received == []
    page.context.close()


def test_the_draft_is_saved_as_one_types_and_no_tab_overwrites_another(
    browser, first_start
):
    page = enter(browser, first_start)
    page.goto(f"{first_start.url}/agents/new/")
    page.fill("input[name=name]", "two-tabs")
    page.locator("#agent-form button:has-text('Create')").click()
    page.wait_for_url(re.compile(r"/agents/\d+/edit/$"))
    other = page.context.new_page()
    other.goto(page.url)

    page.fill("input[name=description]", "from the first tab")
    page.fill("input[name=max_iterations]", "99999999")
    field = page.locator("#part-field-max_iterations")
    expect(field).to_contain_text("Must be at most 10,000", timeout=SECONDS)
    expect(page.locator("#agent-state")).to_contain_text(
        "Not saved, fix below: Rounds", timeout=SECONDS
    )
    page.fill("input[name=max_iterations]", "20")
    expect(field).not_to_contain_text("Must be", timeout=SECONDS)
    other.fill("input[name=description]", "from the second tab")
    expect(other.locator("#agent-state")).to_contain_text(
        "A later draft was saved", timeout=SECONDS
    )
    assert other.input_value("input[name=description]") == "from the second tab"
    page.reload()
    assert page.input_value("input[name=description]") == "from the first tab"
    assert page.input_value("input[name=max_iterations]") == "20"
    other.click("button:has-text('Overwrite it')")
    expect(other.locator("#part-toasts")).to_contain_text("saved.", timeout=SECONDS)
    assert other.input_value("input[name=description]") == "from the second tab"
    page.context.close()


def test_a_mistake_is_named_while_one_types_and_at_its_field(browser, first_start):
    page = enter(browser, first_start)
    page.goto(f"{first_start.url}/agents/new/")

    page.fill("input[name=name]", "loops")
    page.fill("input[name=max_execution_time]", "-1")
    expect(page.locator("#agent-preview-body")).to_contain_text(
        "Must be 0 or more", timeout=SECONDS
    )
    page.locator("#agent-form button:has-text('Create')").click()

    field = page.locator("#part-field-max_execution_time")
    expect(field).to_contain_text("Must be 0 or more")
    assert page.input_value("input[name=max_execution_time]") == "-1"
    assert page.input_value("input[name=name]") == "loops"
    page.context.close()


def test_without_a_script_an_agent_is_made_tested_and_runs(browser, first_start):
    page = enter(browser, first_start, java_script_enabled=False)
    page.goto(f"{first_start.url}/agents/new/")

    page.fill("input[name=name]", "plain-agent")
    page.click("button:has-text('Preview')")
    expect(page.locator("main")).to_contain_text("Nothing has been saved")
    page.goto(f"{first_start.url}/agents/new/")
    page.fill("input[name=name]", "plain-agent")
    page.fill("textarea[name=instructions]", "You are brief.")
    page.locator("#agent-form button:has-text('Create')").click()
    page.fill("#agent-test-form textarea[name=input]", "Plan a day in Reykjavík")
    page.click("#agent-test-form button:has-text('Send')")
    link = page.locator("a:has-text('Open test run')")  # hidden once the run is over
    page.goto(first_start.url + (link.get_attribute("href") or ""))

    # The page reloads itself.
    expect(page.locator("main")).to_contain_text("Succeeded", timeout=SECONDS)
    page.context.close()


def test_on_a_phone_a_run_is_started_with_a_thumb(browser, first_start):
    phone = {"viewport": {"width": 390, "height": 844}, "has_touch": True}
    page = enter(browser, first_start, is_mobile=True, **phone)

    page.goto(f"{first_start.url}/")
    page.tap(".tabbar summary:has-text('More')")
    page.tap(".tabbar a:has-text('Agents')")
    page.tap("#agent-list h2 a:text-is('Travel planner')")
    page.fill("textarea[name=input]", "Plan a day in Oslo")
    button = page.locator("#agent-run-form button:has-text('Run')")
    box = button.bounding_box()
    button.tap()

    page.wait_for_url("**/runs/*/")
    assert box is not None
    assert box["height"] >= 40
    assert overflow(page) == 0
    page.context.close()


def test_the_connection_test_uses_what_is_typed(browser, first_start):
    page = enter(browser, first_start)
    page.goto(f"{first_start.url}/providers/new/")
    result = page.locator("#provider-test .note[data-tone=bad]")

    page.fill("input[name=name]", "nobody")
    page.fill("input[name=base_url]", "http://127.0.0.1:9/v1")
    page.fill("input[name=key]", "sk-typed")
    page.click("button:has-text('Test connection')")
    expect(result).to_contain_text("127.0.0.1:9", timeout=SECONDS)
    assert page.input_value("input[name=key]") == "sk-typed"
    page.click("#provider-form button:has-text('Save')")
    page.wait_for_url(re.compile(r"/providers/\d+/$"))
    page.fill("input[name=base_url]", "http://127.0.0.1:11/v1")
    page.click("button:has-text('Test connection')")

    expect(result).to_contain_text("127.0.0.1:11", timeout=SECONDS)
    expect(page.locator("#provider-test .tag")).to_have_text("unsaved values")
    page.context.close()
