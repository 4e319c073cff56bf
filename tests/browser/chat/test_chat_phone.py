"""The chat on a phone, by touch, for somebody who only chats; and as an app."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, expect

from tests.browser.driver.axe import violations
from tests.browser.driver.chromium import listen, overflow, signed_in
from tests.browser.site import Site, running_site

pytestmark = pytest.mark.browser

LONG = 60_000
PHONE = {
    "viewport": {"width": 390, "height": 844},
    "has_touch": True,
    "is_mobile": True,
}
SHARING = """
import django
django.setup()
from runs.models import Agent
from tests.make import make_user
make_user("bo", password="secret")
Agent.objects.filter(slug__in=["brisk", "slow"]).update(visibility="everyone")
"""
INTERNALS = re.compile(r"\brounds?\b|\btokens?\b|\bworkers?\b|\bruns?\b", re.IGNORECASE)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """A site with a worker, and two agents that are shared with bo."""
    with running_site(seed="tests.browser.seed.live", worker=True) as site:
        site.run("-c", SHARING)
        yield site


@pytest.fixture
def phone(browser, site) -> Iterator[BrowserContext]:
    context = browser.new_context(**PHONE)
    context.set_default_timeout(LONG)
    yield context
    context.close()


@pytest.mark.slow
def test_a_conversation_is_held_by_touch(phone, site):
    page = signed_in(phone, site.url, "bo", "secret")
    received = listen(page)
    page.goto(f"{site.url}/chat/?new=1")
    page.get_by_role("link", name="slow").tap()
    box = page.locator("#chat-form [name=input]")
    box.fill("Plan a day out in Oslo")
    page.get_by_role("button", name="Send").tap()
    page.wait_for_url(re.compile(r"/chat/slow/\d+/"))

    draft = page.locator("[id^=turn-draft-] strong")
    expect(draft).to_have_text("Weather:", timeout=LONG)
    stop = page.get_by_role("button", name="Stop")
    expect(box).to_be_in_viewport(ratio=1)
    expect(stop).to_be_in_viewport(ratio=1)
    assert not INTERNALS.search(page.locator("main").inner_text())
    assert overflow(page) == 0
    stop.tap()
    expect(page.get_by_role("button", name="Regenerate")).to_be_visible()
    expect(box).to_be_in_viewport(ratio=1)
    assert not INTERNALS.search(page.locator("main").inner_text())

    page.get_by_role("link", name="Conversations", exact=True).tap()
    expect(box).to_have_count(0)
    page.locator("#chat-list").get_by_role("link", name="Plan a day").tap()
    expect(box).to_be_in_viewport(ratio=1)
    assert violations(page) == []
    assert received == []


@pytest.mark.slow
def test_people_who_only_chat_see_how_long_an_answer_took(phone, site):
    page = signed_in(phone, site.url, "bo", "secret")
    page.goto(f"{site.url}/chat/brisk/")
    page.locator("#chat-form [name=input]").fill("Plan a day out in Oslo")
    page.get_by_role("button", name="Send").tap()

    said = page.locator(".did > summary")
    expect(said.get_by_text("Answered in")).to_be_visible(timeout=LONG)
    assert not INTERNALS.search(page.locator("main").inner_text())
    said.tap()
    expect(page.locator(".did li").get_by_text("weather_sample")).to_be_visible()
    assert not INTERNALS.search(page.locator("main").inner_text())


@pytest.mark.slow
def test_chromium_finds_that_the_chat_can_be_installed(phone, site):
    page = signed_in(phone, site.url, "bo", "secret")
    page.goto(f"{site.url}/chat/")
    devtools = phone.new_cdp_session(page)

    manifest = devtools.send("Page.getAppManifest")
    found = devtools.send("Page.getInstallabilityErrors")["installabilityErrors"]

    assert manifest["url"].endswith(".webmanifest")
    assert manifest["errors"] == []
    # Contexts of a test are incognito windows, which install nothing.
    assert {one["errorId"] for one in found} <= {"in-incognito"}


@pytest.mark.slow
def test_a_message_that_cannot_be_sent_stays_and_is_sent_again(phone, site):
    page = signed_in(phone, site.url, "bo", "secret")
    page.goto(f"{site.url}/chat/brisk/")
    box, asked = page.locator("#id_input"), page.locator(".ask")
    note = page.get_by_text("No connection. The message could not be sent.")

    for number in (1, 2):  # of a new conversation, and of one that exists
        phone.set_offline(True)
        here = page.url
        box.fill(f"Question {number}")
        box.press("Enter")
        expect(note).to_be_visible()
        assert page.url == here
        assert violations(page) == []
        box.press("Enter")
        expect(note).to_have_count(1)
        expect(box).to_have_value(f"Question {number}")
        phone.set_offline(False)
        page.click("button:has-text('Send again')")
        expect(asked).to_have_count(number)
        expect(asked.last).to_have_text(f"Question {number}")
        expect(page.locator("[data-send]")).to_be_visible()
        expect(box).to_have_value("")
