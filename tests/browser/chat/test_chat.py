"""The chat in Chromium, with the demo agent and a real worker."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.agents.test_first_agent import enter
from tests.browser.driver.chromium import listen

pytestmark = pytest.mark.browser

QUESTION = "根据北京的天气情况，制定一个出游计划"
LONG = 60_000


def test_a_conversation_goes_on_branches_and_is_rated(browser, first_start):
    page = enter(browser, first_start)
    page.set_default_timeout(30_000)
    received = listen(page)
    page.goto(f"{first_start.url}/chat/travel-planner/")
    page.fill("[name=input]", QUESTION)
    page.press("[name=input]", "Enter")
    page.wait_for_url(re.compile(r"/chat/travel-planner/\d+/"))
    beside = page.context.new_page()
    beside.goto(f"{first_start.url}/chat/travel-planner/")
    unfinished = beside.locator("#chat-list .status")
    answer = page.locator(".turn .answer .prose h1")
    expect(answer).to_contain_text("北京", timeout=LONG)
    again = page.get_by_role("button", name="Regenerate")
    expect(again).to_be_visible(timeout=LONG)
    expect(unfinished).to_have_count(0, timeout=LONG)
    first, conversations = page.url, page.locator("#chat-list li").count()

    page.get_by_role("button", name="Good").click()
    expect(page.locator("[value=good][aria-pressed=true]")).to_be_visible()
    page.wait_for_load_state()
    page.locator(".edit-turn summary").click()
    # `fill` selects the text first, and the focus then moves the cursor to its end
    expect(page.locator(".edit-turn textarea")).to_be_focused()
    page.fill(".edit-turn textarea", "Plan a day out in Oslo that fits the weather")
    page.press(".edit-turn textarea", "Enter")
    page.wait_for_url(lambda url: "/chat/travel-planner/" in url and url != first)

    questions = page.get_by_role("navigation", name="Versions of this message")
    expect(questions.locator(".num")).to_have_text("2/2")
    expect(page.locator("#chat-list li")).to_have_count(conversations)
    expect(answer).to_contain_text("Oslo", timeout=LONG)
    expect(again).to_be_visible(timeout=LONG)  # the page came anew with the end
    beside.goto(page.url)
    page.fill("#chat-form [name=input]", "And in Rome?")
    page.press("#chat-form [name=input]", "Enter")
    expect(page.locator(".turn")).to_have_count(2)
    page.fill("#chat-form [name=input]", "half written")
    expect(again).to_have_count(2, timeout=LONG)  # though the page did not come anew
    expect(page.locator("#chat-form [name=input]")).to_have_value("half written")
    beside.get_by_role("link", name="Show 1 newer message").click(timeout=LONG)
    expect(beside.locator(".turn")).to_have_count(2)
    questions.get_by_role("link", name="Previous version").click()
    expect(answer).to_contain_text("北京")
    again.click()
    answers = page.get_by_role("navigation", name="Versions of this answer")
    expect(answers.locator(".num")).to_have_text("2/2", timeout=LONG)
    expect(questions.locator(".num")).to_have_text("1/2")
    expect(page.locator("#chat-list li")).to_have_count(conversations)
    assert received == []
    page.context.close()
