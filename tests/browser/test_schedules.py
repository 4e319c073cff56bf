"""A schedule in Chromium: made by plain choices, seen to come, run now."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.agents.test_first_agent import SECONDS, enter
from tests.browser.driver.chromium import listen, signed_in

pytestmark = pytest.mark.browser


def test_a_schedule_is_made_its_times_are_seen_and_it_runs_now(browser, first_start):
    page = enter(browser, first_start, timezone_id="Asia/Shanghai")
    page.set_default_timeout(SECONDS)
    received = listen(page)
    page.goto(f"{first_start.url}/schedules/new/")
    page.get_by_role("link", name=re.compile("^Travel planner")).click()
    page.wait_for_load_state()

    times = page.locator("#schedule-times")
    expect(times).to_contain_text("Asia/Shanghai")
    page.fill("[name=name]", "Morning plan")
    page.fill("[name=input]", "根据北京的天气情况，制定一个出游计划")
    page.select_option("[name=kind]", "weekly")
    page.check("label:has-text('Thursday') input")
    page.fill("[name=at]", "07:30")
    expect(times).to_contain_text("Every Monday and Thursday at 07:30")
    expect(times.locator("li")).to_have_count(5)
    expect(page.locator("[name=minute]")).to_be_hidden()
    page.click("#schedule-form button:has-text('Create')")
    page.wait_for_url(re.compile(r"/schedules/\d+/$"))

    page.click("button:has-text('Run now')")
    page.wait_for_url(re.compile(r"/runs/\d+/$"))
    expect(page.locator("#run-facts")).to_contain_text("by the schedule Morning plan")
    link = page.locator("#run-facts a:has-text('Morning plan')")
    page.goto(first_start.url + (link.get_attribute("href") or ""))
    expect(page.locator("#schedule-runs tbody tr")).to_have_count(1)
    page.context.close()
    assert received == []


def test_the_times_are_shown_without_a_script(browser, lived_in):
    context = browser.new_context(java_script_enabled=False)
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(f"{lived_in.url}/schedules/902/edit/")

    page.select_option("[name=kind]", "hourly")
    page.fill("[name=minute]", "5")
    page.click("button:has-text('Preview times')")
    expect(page.locator("#schedule-times")).to_contain_text("5 minutes past")
    context.close()
