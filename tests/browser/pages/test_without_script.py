"""The pages that people use most, without JavaScript."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.agents.test_first_agent import SECONDS, enter
from tests.browser.driver.chromium import signed_in
from tests.support.timing import wait_until

pytestmark = pytest.mark.browser


@pytest.fixture
def page(browser, lived_in):
    context = browser.new_context(
        viewport={"width": 1440, "height": 900}, java_script_enabled=False
    )
    yield signed_in(context, lived_in.url, "admin", "admin")
    context.close()


def test_home_shows_the_figures_of_another_period(page, lived_in):
    page.goto(f"{lived_in.url}/")
    period = page.get_by_role("navigation", name="Period")

    period.get_by_role("link", name="7 days").click()

    expect(page).to_have_url(f"{lived_in.url}/?range=7d")
    expect(period.locator("a[aria-current=true]")).to_have_text("7 days")
    expect(page.locator("#home-figures")).to_be_visible()


@pytest.mark.slow
def test_runs_are_filtered_tagged_and_opened(page, lived_in):
    page.goto(f"{lived_in.url}/runs/")
    rows = page.locator("#run-selection tbody tr")

    page.check(".fopt:has-text('Failed') input")
    page.click("#run-facets button:has-text('Apply')")
    expect(page).to_have_url(f"{lived_in.url}/runs/?status=failed")
    number = rows.first.locator("td.sel input").get_attribute("value")
    rows.first.locator("td.sel input").check()
    page.click("#run-more summary")
    page.fill("#chosen-tag", "plain")
    page.click("button[value=tag]")
    expect(page).to_have_url(f"{lived_in.url}/runs/?status=failed")
    expect(rows.first).to_contain_text("plain")
    rows.first.locator("a").first.click()

    expect(page).to_have_url(re.compile(rf"/runs/{number}/"))
    expect(page.locator("main")).to_contain_text("Failed")


def test_tools_are_filtered_and_disabled(page, lived_in):
    page.goto(f"{lived_in.url}/tools/")
    rows = page.locator("#tool-table tbody tr")

    page.fill("#tool-filters [name=q]", "city_forecast")
    page.click("#tool-filters button:has-text('Apply')")
    expect(rows).to_have_count(1)
    page.check("tbody [name=tool]")
    page.click("button[value=disable]")
    expect(rows).to_contain_text("disabled")
    page.check("tbody [name=tool]")
    page.click("button[value=enable]")

    expect(rows).not_to_contain_text("disabled")


@pytest.mark.slow
def test_the_page_of_an_agent_says_what_is_not_saved(browser, first_start):
    page = enter(browser, first_start, java_script_enabled=False)
    page.goto(f"{first_start.url}/agents/1/edit/")

    expect(page.get_by_text("goes to the saved agent")).to_be_visible()
    expect(page.get_by_text("this link discards changes")).to_be_visible()
    expect(page.get_by_text("are not published")).to_be_attached()
    page.context.close()


@pytest.mark.slow
def test_a_message_is_sent_in_the_chat_and_answered(browser, first_start):
    page = enter(browser, first_start, java_script_enabled=False)
    page.goto(f"{first_start.url}/chat/travel-planner/")

    page.fill("[name=input]", "Plan a day in Oslo")
    page.click("[data-send]")
    page.wait_for_url(re.compile(r"/chat/travel-planner/\d+/"))
    answer = page.locator(".turn .answer .prose h1")
    updates = page.locator("noscript a")
    wait_until(lambda: not updates.count() or updates.click(), seconds=40)

    expect(answer).to_contain_text("Oslo", timeout=SECONDS)
    page.context.close()


@pytest.mark.slow
def test_a_reason_that_is_typed_is_not_lost_while_the_run_waits(page, lived_in):
    page.goto(f"{lived_in.url}/runs/9004/")
    reason = page.locator("#run-banner [name=reason]").first

    reason.fill("The customer sent it back.")
    page.wait_for_timeout(6_000)  # an unfinished run reloads after 5 s

    expect(reason).to_have_value("The customer sent it back.")


def test_a_run_is_forked_at_a_step_with_another_result(browser, first_start):
    page = enter(browser, first_start, java_script_enabled=False)
    page.goto(f"{first_start.url}/chat/travel-planner/")
    page.fill("[name=input]", "Plan a day in Bergen")
    page.click("[data-send]")
    page.wait_for_url(re.compile(r"/chat/travel-planner/\d+/"))
    updates = page.locator("noscript a")
    wait_until(lambda: not updates.count() or updates.click(), seconds=40)
    path = page.locator("a:has-text('Open run')").first.get_attribute("href")
    page.goto(f"{first_start.url}{path}")

    page.click("#run-step-2 > .step")
    page.click("a:has-text('Fork here')")
    page.fill("[name=observation]", "It will snow all day.")
    page.click("#fork-kept button:has-text('Fork at step')")

    page.wait_for_url(re.compile(r"/runs/\d+/$"))
    done = page.locator("#run-progress [data-status=succeeded]")
    wait_until(lambda: done.count() or page.reload(), seconds=40)
    page.click("#run-step-2 > .step")
    expect(page.locator("#run-detail")).to_contain_text("It will snow all day.")
    page.context.close()
