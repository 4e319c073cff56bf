"""An answer in the chat while the model writes it, in Chromium with a real worker."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.driver.axe import violations
from tests.browser.driver.chromium import listen, overflow
from tests.browser.runs.test_run_page import OVER, begun, person
from tests.browser.site import Site, running_site
from tests.support.timing import wait_until

pytestmark = pytest.mark.browser

LONG = 60_000
SESSION_COOKIE = re.compile(r"agentsite_\d+$")
SHIFTS = """() => { window.shifts = []; new PerformanceObserver((list) => {
  for (const one of list.getEntries())
    window.shifts.push([one.value, one.hadRecentInput, one.sources.map(
      (s) => s.node?.id || s.node?.className || s.node?.nodeName)]);
}).observe({ type: "layout-shift", buffered: true }); }"""
LINES = """(cell) => { const range = document.createRange();
  range.selectNodeContents(cell);
  return new Set([...range.getClientRects()].map((r) => r.top)).size; }"""
ANSWERED = """
import django
django.setup()
from django.utils import timezone
from runs.models import Agent, Conversation, Run
from tests.make import make_run
agent = Agent.objects.get(slug="brisk")
conversation = Conversation.objects.create(owner=agent.owner, agent=agent, title="Code")
make_run(agent.owner, agent=agent, conversation=conversation, status="succeeded",
    output={answer!r})
print(f"/chat/brisk/{{conversation.pk}}/")
"""
RAW = """() => { window.raw = []; new MutationObserver(() => {
  const text = document.querySelector("[id^=turn-draft-], #draft-text")?.innerText;
  if (text && /\\*\\*|\\||#/.test(text)) window.raw.push(text);
}).observe(document.body, { childList: true, subtree: true, characterData: true }); }"""


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """A site with a worker, and agents of two paces."""
    with running_site(seed="tests.browser.seed.live", worker=True) as site:
        yield site


def layout_shift(page: Page) -> float:
    """Return the shifts that no key or click explains."""
    shifts = page.evaluate("window.shifts")
    return sum(value for value, is_expected, _ in shifts if not is_expected)


def focused(page: Page) -> str:
    return str(page.evaluate("document.activeElement.name ?? ''"))


@pytest.mark.slow
def test_text_is_formatted_while_it_is_written_and_kept_after_stop(browser, site):
    with person(browser, site) as context:
        page = context.new_page()
        received = listen(page)
        page.goto(f"{site.url}/chat/slow/")
        assert focused(page) == "input"
        page.keyboard.type("Plan a day out")
        page.keyboard.press("Shift+Enter")
        page.keyboard.type("in Oslo")
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile(r"/chat/slow/\d+/"))
        page.evaluate(SHIFTS)
        page.evaluate(RAW)
        assert focused(page) == "input"
        expect(page.locator(".ask")).to_have_text("Plan a day out\nin Oslo")
        draft = page.locator("[id^=turn-draft-]")
        expect(draft.locator("h1")).to_contain_text("Oslo", timeout=LONG)
        expect(draft.locator("strong")).to_have_text("Weather:", timeout=LONG)
        expect(draft.locator("td").first).to_have_text("09:00", timeout=LONG)
        assert page.evaluate("window.raw") == []
        assert layout_shift(page) < 0.02, page.evaluate("window.shifts")
        page.get_by_role("button", name="Stop").click()
        kept = page.locator(".answer .kept")
        expect(kept.locator("td").first).to_have_text("09:00", timeout=LONG)
        expect(page.locator(".stopped-note")).to_have_text("You stopped this answer")
        page.reload()
        expect(kept.locator("h1")).to_contain_text("Oslo")
        assert received == []


@pytest.mark.slow
def test_the_chat_is_used_by_keys(browser, site):
    with person(browser, site) as context:
        page = context.new_page()
        received = listen(page)
        page.goto(f"{site.url}/chat/slow/")
        page.get_by_role("button", name="Plan a day out in Oslo").click()
        page.wait_for_url(re.compile(r"/chat/slow/\d+/"))
        assert focused(page) == "input"
        expect(page.locator("[id^=turn-draft-] h1")).to_be_visible(timeout=LONG)
        log = page.locator("[data-follow]")
        assert log.evaluate("e => e.scrollWidth - e.clientWidth") == 0
        page.keyboard.type("half written")
        page.keyboard.press("Enter")  # nothing is sent meanwhile
        page.keyboard.press("Escape")
        again = page.get_by_role("button", name="Regenerate")
        expect(again).to_be_visible(timeout=LONG)
        expect(page.locator(".stopped-note")).to_have_text("You stopped this answer")
        expect(page.get_by_role("button", name="Continue")).to_have_count(0)
        page.wait_for_load_state()
        expect(page.locator(".ask")).to_have_count(1)
        page.fill("#chat-form [name=input]", "")
        page.keyboard.press("ArrowUp")
        expect(page.locator(".edit-turn textarea")).to_be_focused()
        page.keyboard.press("Escape")
        page.locator(".rename summary").click()
        expect(page.locator("#conversation-title")).to_be_focused()
        page.keyboard.type(" by train")
        page.keyboard.press("Enter")
        expect(page.locator(".rename h1")).to_contain_text("by train")
        again.click()
        page.wait_for_load_state()
        draft = page.locator("[id^=turn-draft-][aria-busy]")
        expect(draft).to_contain_text("Oslo", timeout=LONG)
        page.get_by_role("button", name="Stop").click()
        expect(again).to_be_visible(timeout=LONG)
        page.wait_for_load_state()
        assert focused(page) == "input"
        page.keyboard.press("Escape")  # leaves the box, so that keys work
        page.keyboard.press("/")
        page.keyboard.type("TRAIN")
        expect(page.locator("#chat-list mark").first).to_have_text("train")
        assert violations(page) == []
        page.keyboard.press("Control+o")
        page.wait_for_url(f"{site.url}/chat/slow/")
        assert violations(page) == []
        assert received == []


@pytest.mark.slow
def test_the_list_of_chats_marks_an_answer_that_is_not_finished(browser, site):
    with person(browser, site) as context:
        page, beside = context.new_page(), context.new_page()
        page.goto(f"{site.url}/chat/slow/")
        page.fill("[name=input]", "Plan a day out in Oslo")
        page.press("[name=input]", "Enter")
        page.wait_for_url(re.compile(r"/chat/slow/\d+/"))
        beside.goto(f"{site.url}/chat/slow/")
        number = page.url.rstrip("/").rpartition("/")[2]
        unfinished = beside.locator(f"#chat-list-{number} .status")
        expect(unfinished).to_have_count(1)
        page.get_by_role("button", name="Stop").click()
        expect(unfinished).to_have_count(0, timeout=LONG)


@pytest.mark.slow
def test_an_answer_takes_the_place_of_its_draft_without_a_jump(browser, site):
    with person(browser, site) as context:
        page = context.new_page()
        received = listen(page)
        page.goto(f"{site.url}/chat/brisk/")
        page.fill("[name=input]", "Plan a day out in Oslo")
        page.press("[name=input]", "Enter")
        page.wait_for_url(re.compile(r"/chat/brisk/\d+/"))
        page.evaluate(SHIFTS)
        page.evaluate(RAW)
        page.evaluate("window.stayed = true")
        expect(page.get_by_role("button", name="Regenerate")).to_be_visible(
            timeout=LONG
        )
        assert page.evaluate("window.stayed") is True
        assert page.evaluate("window.raw") == []
        assert layout_shift(page) < 0.02, page.evaluate("window.shifts")
        assert focused(page) == "input"
        assert received == []


@pytest.mark.slow
def test_the_run_page_formats_what_is_written_without_a_jump(browser, site):
    with person(browser, site) as context:
        page = begun(context, site, "brisk")
        page.evaluate(SHIFTS)
        page.evaluate(RAW)
        page.wait_for_selector(OVER)
        expect(page.locator("#answer-text td").first).to_be_visible()
        assert page.evaluate("window.raw") == []
        assert layout_shift(page) < 0.02, page.evaluate("window.shifts")


@pytest.mark.slow
def test_a_stopped_run_shows_what_the_model_had_written(browser, site):
    with person(browser, site) as context:
        page = begun(context, site, "slow")
        page.evaluate(SHIFTS)
        page.evaluate(RAW)
        expect(page.locator("#draft-text td").first).to_be_visible(timeout=LONG)
        assert page.evaluate("window.raw") == []
        page.locator("#run-actions button:has-text('Stop')").click()
        expect(page.locator("#answer-kept td").first).to_be_visible(timeout=LONG)
        expect(page.locator("#run-answer")).to_contain_text("Stopped by ann")
        page.reload()
        expect(page.locator("#answer-kept h1")).to_be_visible()


CODE = """```python
def walk(city):
    return city
```

| tool | what it does in many words that fill the whole width of the column |
|---|---|
| weather_of_the_day | Looks up the weather of a city and says how likely rain is |
"""


ARABIC = """## خطة اليوم

يمكن استعمال `walk(city)` كل يوم.

1. زيارة المتحف

2. المشي في المدينة

| الوقت | المكان |
|---|---|
| صباحا | المتحف |

```python
walk("Oslo")
```

In the evening it rains.

- Take a coat
"""
DIRECTIONS = """(answer) => Object.fromEntries(
  ["h2", "p:has(code)", "ol", "table", "td", "pre", "code", "pre + p", "ul"].map(
    (one) => [one, getComputedStyle(answer.querySelector(one)).direction]))"""
LEFT_AND_RIGHT = """(one) => { const range = document.createRange();
  range.selectNodeContents(one);
  const [text, box] = [range, one].map((each) => each.getBoundingClientRect());
  return [text.left - box.left < 20, box.right - text.right < 20]; }"""


@pytest.mark.slow
def test_text_follows_the_direction_of_its_language(browser, site):
    script = ANSWERED.format(answer=ARABIC)
    path = site.run("-c", script).strip().splitlines()[-1]
    with person(browser, site) as context:
        page = context.new_page()
        page.goto(site.url + path)
        answer = page.locator(".answer .prose")
        assert answer.evaluate(DIRECTIONS) == {
            **dict.fromkeys(["h2", "p:has(code)", "ol", "table", "td"], "rtl"),
            **dict.fromkeys(["pre", "code", "pre + p", "ul"], "ltr"),
        }
        table, box = (one.bounding_box() for one in (answer.locator("table"), answer))
        assert abs(table["x"] + table["width"] - box["x"] - box["width"]) < 1
        asked = page.locator(".ask")
        asked.evaluate("e => { e.style.width = '300px'; e.textContent = 'مرحبا' }")
        assert asked.evaluate(LEFT_AND_RIGHT) == [False, True]
        asked.evaluate("e => { e.textContent = 'Hello' }")
        assert asked.evaluate(LEFT_AND_RIGHT) == [True, False]
        assert overflow(page) == 0


@pytest.mark.slow
def test_code_can_be_copied_and_words_in_tables_stay_whole(browser, site):
    script = ANSWERED.format(answer=CODE)
    path = site.run("-c", script).strip().splitlines()[-1]
    with person(browser, site) as context:
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        page = context.new_page()
        received = listen(page)
        page.set_viewport_size({"width": 390, "height": 844})
        page.goto(site.url + path)
        frame = page.locator(".prose pre")
        assert frame.evaluate("e => getComputedStyle(e).borderTopWidth") == "1px"
        keyword = frame.locator(".h-k").first
        colors = [
            one.evaluate("e => getComputedStyle(e).color") for one in (keyword, frame)
        ]
        assert colors[0] != colors[1]
        frame.hover()
        frame.get_by_role("button", name="Copy code").click()
        copied = "navigator.clipboard.readText()"
        wait_until(
            lambda: (
                page.evaluate(copied).strip() == "def walk(city):\n    return city"
                or page.wait_for_timeout(50)
            )
        )
        cell = page.locator(".prose td").first
        assert cell.evaluate(LINES) == 1
        assert overflow(page) == 0
        assert received == []


@pytest.mark.slow
def test_the_lists_show_new_runs_without_a_reload(browser, site):
    with person(browser, site) as context:
        begun(context, site, "brisk").wait_for_selector(OVER)
        lists = [context.new_page() for _ in range(2)]
        received = []
        for page, path in zip(lists, ("/runs/", "/"), strict=True):
            page.goto(site.url + path)
            received.append(listen(page))
        address = begun(context, site, "brisk").url.removeprefix(site.url)
        for page in lists:
            expect(page.locator(f"main a[href^='{address}']")).to_be_visible(
                timeout=LONG
            )
        assert received == [[], []]


@pytest.mark.slow
def test_enter_sends_a_test_message_once(browser, site):
    with person(browser, site) as context:
        page = context.new_page()
        received = listen(page)
        page.goto(f"{site.url}/agents/")
        page.click("a:text-is('brisk')")
        page.goto(page.url.rstrip("/") + "/edit/")
        box = page.locator("#agent-test-form [name=input]")
        box.fill("Plan a day out in Oslo")
        box.dispatch_event("keydown", {"key": "Enter", "isComposing": True})
        expect(page.locator("#agent-try .ask")).to_have_count(0)
        sent = hold_posts(page, "/test/")
        with page.expect_request("**/test/"):
            box.press("Enter")
        box.press("Enter")
        page.wait_for_timeout(500)
        sent[0].continue_()
        expect(page.locator("#agent-try .answer h1")).to_be_visible(timeout=LONG)
        assert len(sent) == 1
        expect(page.locator("#agent-try .ask")).to_have_count(1)
        assert focused(page) == "input"
        assert received == []


@pytest.mark.slow
def test_a_test_message_can_be_stopped_where_it_was_sent(browser, site):
    with person(browser, site) as context:
        page = context.new_page()
        page.goto(f"{site.url}/agents/")
        page.click("a:text-is('slow')")
        page.goto(page.url.rstrip("/") + "/edit/")
        page.fill("#agent-test-form [name=input]", "Plan a day out in Oslo")
        page.press("#agent-test-form [name=input]", "Enter")
        stop = page.locator("#agent-chat .stop button").last
        expect(page.locator("#agent-chat [id^=turn-draft-] h1")).to_be_visible(
            timeout=LONG
        )
        stop.click()
        answer = page.locator("#agent-chat .answer").last
        expect(answer.locator("summary [data-status=canceled]")).to_be_visible(
            timeout=LONG
        )
        expect(stop).to_be_hidden()
        assert "/edit/" in page.url


def hold_posts(page: Page, ending: str) -> list[Route]:
    """Return a list that fills with requests, which a test lets go on."""
    held: list[Route] = []
    page.route(
        lambda url: url.endswith(ending),
        lambda route: (
            held.append(route) if route.request.method == "POST" else route.continue_()
        ),
    )
    return held


def test_enter_sends_a_message_once_and_not_while_composing(browser, site):
    with person(browser, site) as context:
        page = context.new_page()
        page.goto(f"{site.url}/chat/brisk/")
        page.fill("[name=input]", "Plan a day out in Oslo")
        sent = hold_posts(page, "/say/")
        composing = {"key": "Enter", "isComposing": True}
        page.locator("[name=input]").dispatch_event("keydown", composing)
        page.wait_for_timeout(500)
        assert sent == []
        with page.expect_request("**/say/"):
            page.keyboard.press("Enter")
        page.keyboard.press("Enter")
        page.wait_for_timeout(500)
        assert len(sent) == 1
        sent[0].continue_()
        page.wait_for_url(re.compile(r"/chat/brisk/\d+/"))
        expect(page.locator(".ask")).to_have_count(1)


@pytest.mark.slow
def test_what_is_typed_while_a_message_is_sent_stays(browser, site):
    with person(browser, site) as context:
        page = context.new_page()
        page.goto(f"{site.url}/chat/brisk/")
        sent = hold_posts(page, "/say/")
        page.keyboard.type("Plan a day out in Oslo")
        with page.expect_request("**/say/"):
            page.keyboard.press("Enter")
        page.keyboard.type(" and in Bergen")
        sent[0].continue_()
        page.wait_for_url(re.compile(r"/chat/brisk/\d+/"))
        expect(page.locator(".ask")).to_have_text("Plan a day out in Oslo")
        box = page.locator("#id_input")
        expect(box).to_have_value(" and in Bergen")
        page.reload()
        expect(box).to_have_value(" and in Bergen")

        expect(page.locator("[data-send]")).to_be_visible(timeout=LONG)
        box.focus()
        with page.expect_request("**/say/"):
            page.keyboard.press("Enter")
        page.keyboard.type(" by train")
        sent[1].continue_()
        expect(page.locator(".ask")).to_have_count(2)
        expect(box).to_have_value(" by train")
        box.fill("")
        page.reload()
        expect(box).to_have_value("")
        page.goto(f"{site.url}/chat/brisk/")
        expect(box).to_have_value("")


def test_a_message_typed_while_an_answer_is_written_stays(browser, site):
    with person(browser, site) as context:
        page = context.new_page()
        page.goto(f"{site.url}/chat/slow/")
        page.get_by_role("button", name="Plan a day out in Oslo").click()
        page.wait_for_url(re.compile(r"/chat/slow/\d+/"))
        box = page.locator("#id_input")
        box.fill("And tomorrow?")
        page.keyboard.press("Enter")
        page.reload()
        expect(box).to_have_value("And tomorrow?")


def test_what_was_typed_is_gone_after_sign_out(browser, site):
    with person(browser, site) as context:
        page = context.new_page()
        page.goto(f"{site.url}/chat/brisk/")
        page.keyboard.type("For nobody else")
        assert page.evaluate("sessionStorage.length") == 1
        page.click("summary.avatar")
        page.click("button:has-text('Sign out')")
        page.wait_for_url("**/sign-in/**")
        assert page.evaluate("sessionStorage.length") == 0


@pytest.mark.slow
def test_a_failure_opens_the_failed_step_while_one_looks_on(browser, site):
    with person(browser, site, reduced_motion="no-preference") as context:
        page = begun(context, site, "broken")
        received = listen(page)
        page.evaluate(SHIFTS)
        expect(page.locator("#run-detail #run-attempts")).to_be_visible(timeout=LONG)
        expect(page.locator("#run-progress")).to_contain_text("Failed")
        expect(page.locator("#run-step-1 .step")).to_have_attribute(
            "aria-current", "true"
        )
        expect(page.locator("#failure-title")).to_be_visible()
        page.wait_for_timeout(1_000)  # nothing replaces the step afterwards
        expect(page.locator("#run-detail #run-attempts")).to_be_visible()
        assert layout_shift(page) < 0.02, page.evaluate("window.shifts")
        assert received == []


@pytest.mark.slow
def test_the_edit_box_fits_and_can_be_canceled(browser, site):
    with person(browser, site) as context:
        page = context.new_page()
        received = listen(page)
        script = ANSWERED.format(answer="It rains.")
        page.goto(site.url + site.run("-c", script).strip().splitlines()[-1])
        summary = page.locator(".edit-turn summary")
        before = summary.bounding_box()
        summary.click()
        box, turn = page.locator(".edit-turn textarea"), page.locator(".turn")
        expect(box).to_be_focused()
        right = [one.bounding_box() for one in (box, turn)]
        assert {one["x"] + one["width"] for one in right} == {
            before["x"] + before["width"] - 8
        }
        asked = box.input_value()
        box.fill("Something else")
        page.get_by_role("button", name="Cancel").click()
        expect(page.locator(".edit-turn[open]")).to_have_count(0)
        expect(summary).to_be_focused()
        summary.click()
        expect(box).to_have_value(asked)
        box.press("Escape")
        expect(page.locator(".edit-turn[open]")).to_have_count(0)
        assert received == []


RESUME = """
import django
django.setup()
from runs.models import Run
from runs.services.runs.resume import resume_run
run = Run.objects.filter(agent__slug="broken").latest("pk")
type(run.agent).objects.filter(pk=run.agent_id).update(model=run.agent.model)
resume_run(run, by=None)
"""


@pytest.mark.slow
def test_an_open_chat_shows_that_a_run_was_resumed_elsewhere(browser, site):
    with person(browser, site) as context:
        page = context.new_page()
        received = listen(page)
        page.goto(f"{site.url}/chat/broken/")
        page.get_by_role("button", name="Plan a day out in Oslo").click()
        page.wait_for_url(re.compile(r"/chat/broken/\d+/"))
        resume = page.get_by_role("button", name="Resume")
        expect(resume).to_be_visible(timeout=LONG)
        page.fill("#id_input", "half written")
        first = page.locator(".answer [role=status]").inner_text()
        page.evaluate("document.querySelector('.turn').dataset.old = 1")
        site.run("-c", RESUME)

        expect(page.locator(".turn[data-old]")).to_have_count(0, timeout=LONG)
        expect(resume).to_be_visible(timeout=LONG)  # it failed again
        expect(page.locator(".answer [role=status]")).not_to_have_text(first)
        expect(page.locator("#id_input")).to_have_value("half written")
        expect(page.locator("[data-send]")).to_be_visible()
        assert received == []


@pytest.mark.slow
def test_an_answer_that_ends_without_a_connection_has_its_buttons_later(browser, site):
    with person(browser, site) as context:
        page = context.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"{site.url}/chat/brisk/")
        page.get_by_role("button", name="Plan a day out in Oslo").click()
        page.wait_for_url(re.compile(r"/chat/brisk/\d+/"))
        address = page.url
        page.route(address, lambda route: route.abort())
        page.wait_for_event("requestfailed", lambda one: one.url == address)
        again = page.get_by_role("button", name="Regenerate")
        expect(again).to_have_count(0)
        page.unroute(address)

        expect(again).to_be_visible()
        assert errors == []


def test_back_does_not_offer_a_sent_message_again(browser, site):
    with person(browser, site) as context:
        page = context.new_page()
        page.goto(f"{site.url}/chat/brisk/")
        page.fill("#id_input", "Plan a day out in Oslo")
        page.press("#id_input", "Enter")
        page.wait_for_url(re.compile(r"/chat/brisk/\d+/"))
        page.go_back()
        page.wait_for_url("**/chat/brisk/")
        page.wait_for_load_state()
        expect(page.locator("#id_input")).to_have_value("")
        page.wait_for_timeout(300)
        expect(page.locator("#id_input")).to_have_value("")


def sign_in_again(page: Page, text: str) -> None:
    """Enter ann's password on the page that appears, and find the text in the box."""
    page.wait_for_url("**/sign-in/**")
    page.fill("input[name=username]", "ann")
    page.fill("input[name=password]", "secret")
    page.click("button:has-text('Sign in')")
    page.wait_for_url("**/chat/brisk/**")
    expect(page.locator("#id_input")).to_have_value(text)


def test_a_message_survives_that_the_session_ended(browser, site):
    answered = site.run("-c", ANSWERED.format(answer="Hello.")).strip()
    with person(browser, site) as context:
        page = context.new_page()
        for path in (answered, "/chat/brisk/"):
            page.goto(site.url + path)
            context.clear_cookies(name=SESSION_COOKIE)
            page.fill("#id_input", "And tomorrow?")
            page.press("#id_input", "Enter")
            sign_in_again(page, "And tomorrow?")
            assert page.url == site.url + path
        page.goto(site.url + answered)
        page.fill("#id_input", "")
        page.locator(".edit-turn summary").click()
        expect(page.locator(".edit-turn textarea")).to_be_focused()
        context.clear_cookies(name=SESSION_COOKIE)
        page.fill(".edit-turn textarea", "Edited")
        page.press(".edit-turn textarea", "Enter")
        sign_in_again(page, "Edited")
        expect(page.locator(".turn")).to_have_count(1)


@pytest.mark.slow
def test_a_message_survives_that_its_conversation_was_archived_elsewhere(browser, site):
    answered = site.run("-c", ANSWERED.format(answer="Hello."))
    with person(browser, site) as context:
        page, beside = context.new_page(), context.new_page()
        page.goto(site.url + answered.strip())
        beside.goto(page.url)
        beside.locator("summary[title=More]").click()
        beside.get_by_role("button", name="Archive", exact=True).click()
        page.fill("#id_input", "And tomorrow?")
        page.press("#id_input", "Enter")
        box = page.locator("#id_input")
        refused = page.locator("#chat-form [role=alert]")
        expect(refused).to_contain_text("Unarchive it first.")
        expect(box).to_have_value("And tomorrow?")
        page.locator(".chatdock").get_by_role("button", name="Unarchive").click()
        page.wait_for_url(re.compile(r"/chat/brisk/\d+/$"))
        expect(refused).to_have_count(0)
        expect(box).to_have_value("And tomorrow?")
