"""A person says yes: the run waits, the count is live everywhere, the run goes on."""

import time

import pytest
from playwright.sync_api import expect

from tests.browser.agents.test_first_agent import enter
from tests.browser.driver.chromium import listen, signed_in

pytestmark = pytest.mark.browser

SECONDS = 60_000
ASKING = """
import django
django.setup()
from runs.models import Agent, AgentTool
agent = Agent.objects.get(slug="travel-planner")
agent.pk, agent.slug, agent.name = None, "asks-first", "Asks first"
agent.save()
original = Agent.objects.get(slug="travel-planner").uses.get()
AgentTool.objects.create(agent=agent, tool=original.tool, policy="ask")
print(agent.pk)
"""


def test_a_call_waits_for_an_approval_that_is_counted_live(browser, first_start):
    agent = first_start.run("-c", ASKING).strip().splitlines()[-1]
    page = enter(browser, first_start)
    received = listen(page)
    elsewhere = page.context.new_page()
    elsewhere.goto(f"{first_start.url}/prompts/")
    expect(elsewhere.locator("#part-needs")).to_be_attached()

    page.goto(f"{first_start.url}/agents/{agent}/")
    page.fill("textarea[name=input]", "Plan a day in Beijing")
    page.click("#agent-run-form button:has-text('Run')")
    page.wait_for_url("**/runs/*/")
    banner = page.locator("#run-banner")
    expect(banner).to_contain_text("Approval required", timeout=SECONDS)
    expect(banner.locator("pre.exact")).to_contain_text("city")
    expect(elsewhere.locator("#part-needs")).to_contain_text("1", timeout=SECONDS)
    expect(page.locator("#part-needs")).to_contain_text("1", timeout=SECONDS)

    form = banner.locator("form[id^=approval-form-]").get_attribute("id")
    elsewhere.goto(f"{first_start.url}/approvals/")
    inbox = page.context.new_page()
    inbox.goto(f"{first_start.url}/approvals/")
    asleep = page.context.new_page()
    asleep.goto(f"{first_start.url}/approvals/")
    expect(asleep.locator("#approval-head")).to_contain_text("Open 1")
    move_to_background(asleep, is_hidden=True)
    elsewhere.click(f"#{form} button:has-text('Approve and continue')")
    expect(elsewhere.locator("#part-toasts")).to_contain_text(
        "approved. The run continues."
    )
    expect(page.locator("#run-progress")).to_contain_text("Succeeded", timeout=SECONDS)
    expect(page.locator("#part-needs")).not_to_contain_text("1", timeout=SECONDS)
    expect(inbox.locator("#approval-head")).to_contain_text("Open 0", timeout=SECONDS)
    move_to_background(asleep, is_hidden=False)
    expect(asleep.locator("#approval-head")).to_contain_text("Open 0", timeout=SECONDS)
    page.context.close()
    assert received == []


def move_to_background(page, *, is_hidden):
    """Do what a browser does when a person selects another tab, and comes back."""
    page.evaluate(
        """isHidden => {
          Object.defineProperty(document, "hidden",
            { get: () => isHidden, configurable: true });
          document.dispatchEvent(new Event("visibilitychange"));
        }""",
        is_hidden,
    )


def test_a_page_connects_although_the_extension_comes_late(browser, lived_in):
    context = browser.new_context()
    page = signed_in(context, lived_in.url, "admin", "admin")

    def late(route):
        time.sleep(0.5)
        route.continue_()

    page.route("**/hx-sse.min.js", late)
    with page.expect_request("**/live/me/", timeout=SECONDS):
        page.goto(f"{lived_in.url}/agents/")
    context.close()


@pytest.mark.slow
def test_arguments_are_edited_in_the_test_chat(browser, first_start):
    agent = first_start.run("-c", ASKING.replace("asks-first", "asks-in-chat"))
    page = enter(browser, first_start, viewport={"width": 1440, "height": 900})
    received = listen(page)
    address = f"{first_start.url}/agents/{agent.strip().splitlines()[-1]}/edit/"
    page.goto(address)
    page.fill("#agent-test-form textarea[name=input]", "Plan a day in Beijing")
    page.click("#agent-test-form button:has-text('Send')")

    page.click("#agent-try summary:has-text('Edit arguments')", timeout=SECONDS)
    city = page.locator("#agent-try .as-fields [name$='-city']")
    assert city.input_value() != ""
    expect(page.locator("#agent-try .as-json textarea")).to_be_hidden()
    city.fill("Oslo")
    page.click("#agent-try a:has-text('Exact prompt')")
    expect(city).to_have_count(0)
    page.click("#agent-try a:has-text('Test chat')")
    page.click("#agent-try summary:has-text('Edit arguments')")
    assert page.locator("#part-toasts [role=alert] .toast").count() == 0
    city.fill("Oslo")
    page.go_back()
    expect(city).to_have_count(0)
    assert page.locator("#part-toasts [role=alert] .toast").count() == 0
    page.go_forward()
    page.click("#agent-try summary:has-text('Edit arguments')")
    city.fill("Oslo")
    page.click("#agent-try button:has-text('Approve')")

    expect(page.locator("#agent-try .answer .did")).to_contain_text(
        "tool call", timeout=SECONDS
    )
    expect(page.locator("#agent-try summary:has-text('Edit arguments')")).to_be_hidden()
    assert page.url.startswith(address)
    edited = first_start.run("-c", EDITED).strip().splitlines()[-1]
    assert "Oslo" in edited
    page.context.close()
    assert received == []


EDITED = """
import django
django.setup()
from runs.models import Decision
print(Decision.objects.latest("pk").edited_input)
"""
