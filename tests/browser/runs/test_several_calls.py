"""Several calls wait in a run: what is typed for one stays while others are decided."""

import json

import pytest
from playwright.sync_api import expect

from tests.browser.agents.test_first_agent import enter
from tests.browser.driver.chromium import listen, seen_by
from tests.browser.site import running_site

pytestmark = pytest.mark.browser

WAITING = """
import django
django.setup()
from django.contrib.auth.models import User
from runs.models import Agent, Conversation
from tests.make import (
    make_call, make_decision, make_run, make_spec, make_step, make_user)
from tools.spec import ToolSpec
city = {"type": "object", "properties": {
    "city": {"type": "string"}, "meal": {"enum": ["lunch", "dinner"]}}}
tool = ToolSpec(name="book_table", description="", effect="side_effect",
                args_schema=city | {"required": ["city"]})
admin = User.objects.get(username="admin")
make_user("ana", is_superuser=True)
agent = Agent.objects.filter(slug="travel-planner").get()
chat = Conversation.objects.create(owner=admin, agent=agent, title="Tables")
run = make_run(admin, agent=agent, status="awaiting_approval", conversation=chat,
               spec=make_spec(tools=(tool,)))
call = make_call(run)
calls = []
for name in ("Berlin", "Paris", "Tokyo"):
    step = make_step(run, call=call, tool="book_table", status="awaiting_approval",
                     effect="side_effect", tool_input={"city": name})
    calls.append(make_decision(step).pk)
print(run.pk, chat.pk, *calls)
"""
STORED = """
import django, json
django.setup()
from runs.models import Decision
row = Decision.objects.get(pk={})
print(json.dumps([row.answer, row.edited_input, row.reason]))
"""
DECIDE_UNNOTICED = """
import django
django.setup()
from django.contrib.auth.models import User
from runs.models import Decision
ana = User.objects.get(username="ana")
Decision.objects.filter(pk={}).update(answer="approved", by=ana)
"""
SLOW_RESPONSES = """() => {
  const send = window.fetch;
  window.fetch = async (...request) => {
    const response = await send(...request);
    if (request[1]?.method === "POST") await new Promise((on) => setTimeout(on, 3000));
    return response;
  };
}"""


@pytest.fixture(scope="module")
def site():
    with running_site() as one:
        yield one


@pytest.fixture
def waiting(site):
    """Return a run, its conversation, and its three open approvals."""
    return [int(pk) for pk in site.run("-c", WAITING).split()[-5:]]


@pytest.fixture
def page(browser, site):
    page = enter(browser, site, viewport={"width": 1440, "height": 900})
    received = listen(page)
    yield page
    page.context.close()
    assert received == []


def stored(site, pk):
    return json.loads(site.run("-c", STORED.format(pk)).strip().splitlines()[-1])


def form_of(page, pk):
    return page.locator(f"#approval-form-{pk}")


def no_problem(page):
    return page.locator("#part-toasts [role=alert] .toast").count() == 0


def edit_city(page, pk, text):
    """Type another city, and leave the caret after its second character."""
    form_of(page, pk).locator("summary:has-text('Edit arguments')").click()
    city = form_of(page, pk).locator(".as-fields [name$='-city']")
    city.fill(text)
    city.evaluate("field => field.setSelectionRange(2, 2)")
    return city


def caret(field):
    return field.evaluate(
        "field => [document.activeElement === field, field.selectionStart]"
    )


def approve_elsewhere(page, site, pk):
    """Approve a call in another tab."""
    other = page.context.new_page()
    approve_in_inbox(other, site, pk)
    other.close()


def approve_as_ana(page, site, pk, **choices):
    """Approve a call in the browser of another person."""
    context = page.context.browser.new_context()
    approve_in_inbox(seen_by(context, site.url, "ana"), site, pk, **choices)
    context.close()


def approve_in_inbox(page, site, pk, *, alike=False):
    page.goto(f"{site.url}/approvals/{pk}/")
    form_of(page, pk).locator("[name=alike]").set_checked(alike)
    form_of(page, pk).locator("button[value=approve]").click()
    expect(page.locator("#part-toasts")).to_contain_text("approved")


def approve_edited(page, site, pk):
    """Approve a call with what stands in its form; return what is stored."""
    form_of(page, pk).locator("button[value=approve]").click()
    expect(form_of(page, pk)).to_have_count(0)
    assert no_problem(page)
    return stored(site, pk)


@pytest.mark.parametrize("where", ["same tab", "other tab"])
@pytest.mark.slow
def test_a_chat_keeps_what_is_typed_for_a_call(page, site, waiting, where):
    _, chat, first, _, third = waiting
    page.goto(f"{site.url}/chat/travel-planner/{chat}/")
    city = edit_city(page, first, "Oslo")

    if where == "same tab":
        form_of(page, third).locator("button[value=approve]").click()
    else:
        approve_elsewhere(page, site, third)
    expect(form_of(page, third)).to_have_count(0)

    expect(city).to_be_visible()
    assert city.input_value() == "Oslo"
    if where == "other tab":
        assert caret(city) == [True, 2]
    assert approve_edited(page, site, first) == ["approved", {"city": "Oslo"}, ""]


@pytest.mark.parametrize("where", ["same tab", "other tab"])
def test_the_run_page_keeps_what_is_typed_for_a_call(page, site, waiting, where):
    run, _, first, second, third = waiting
    page.goto(f"{site.url}/runs/{run}/")
    page.locator(f"#approval-banner-{second} > summary").click()
    page.locator(f"#approval-banner-{third} > summary").click()
    note = form_of(page, second).locator("[name=reason]")
    note.fill("not in winter")
    form_of(page, first).locator("[name=reason]").fill("as agreed")
    city = edit_city(page, first, "Oslo")

    if where == "same tab":
        form_of(page, third).locator("button[value=approve]").click()
    else:
        approve_elsewhere(page, site, third)
    expect(form_of(page, third)).to_have_count(0)

    expect(city).to_be_visible()
    expect(note).to_be_visible()
    assert (city.input_value(), note.input_value()) == ("Oslo", "not in winter")
    if where == "other tab":
        assert caret(city) == [True, 2]
    assert approve_edited(page, site, first) == [
        "approved",
        {"city": "Oslo"},
        "as agreed",
    ]
    form_of(page, second).locator("button[value=reject]").click()
    expect(page.locator("#part-toasts")).to_contain_text("book_table rejected")
    assert stored(site, second) == ["rejected", None, "not in winter"]


@pytest.mark.parametrize("kind", ["chat", "run"])
@pytest.mark.slow
def test_a_call_that_is_decided_elsewhere_goes_although_it_is_edited(
    page, site, waiting, kind
):
    run, chat, first, second, _ = waiting
    path = f"/runs/{run}/" if kind == "run" else f"/chat/travel-planner/{chat}/"
    page.goto(site.url + path)
    edit_city(page, first, "Oslo")

    approve_as_ana(page, site, first)

    expect(form_of(page, first)).to_have_count(0)
    expect(form_of(page, second)).to_have_count(1)
    expect(page.locator("#part-toasts [role=alert]")).to_contain_text(
        "book_table: ana already answered this: Approved. What you typed was not used."
    )
    assert stored(site, first)[:2] == ["approved", None]


@pytest.mark.parametrize("answer", ["refused", "chosen"])
@pytest.mark.slow
def test_any_answer_that_is_not_used_is_reported(page, site, waiting, answer):
    run, _, first, _, _ = waiting
    page.goto(f"{site.url}/runs/{run}/")
    form_of(page, first).locator("summary:has-text('Edit arguments')").click()
    if answer == "chosen":
        form_of(page, first).locator("select").select_option("dinner")
    else:
        form_of(page, first).locator("label:has-text('JSON')").click()
        form_of(page, first).locator("[name=edited]").fill('{"city": 3')
        form_of(page, first).locator("button[value=approve]").click()
        expect(form_of(page, first).locator(".errors")).to_contain_text("bracket")

    approve_as_ana(page, site, first)

    expect(form_of(page, first)).to_have_count(0)
    expect(page.locator("#part-toasts [role=alert]")).to_contain_text(
        "ana already answered this"
    )


@pytest.mark.parametrize("act", ["stop", "approve all"])
@pytest.mark.slow
def test_what_one_does_oneself_is_not_reported_as_done_elsewhere(
    page, site, waiting, act
):
    run, _, first, second, third = waiting
    page.goto(f"{site.url}/runs/{run}/")
    edit_city(page, first, "Oslo")

    page.evaluate(SLOW_RESPONSES)  # the update comes first
    with page.expect_response(f"**/approvals/{first}/decided/") as decided:
        if act == "stop":
            page.locator("form[action$='/stop/'] button").first.click()
        else:
            page.locator(f"#approval-banner-{second} > summary").click()
            form_of(page, second).locator("[name=alike]").check()
            form_of(page, second).locator("button[value=approve]").click()
    expect(form_of(page, first)).to_have_count(0)
    expect(form_of(page, third)).to_have_count(0)

    assert decided.value.text() == ""
    assert no_problem(page)


@pytest.mark.slow
def test_an_answer_that_comes_too_late_is_reported_once(page, site, waiting):
    run, _, first, _, _ = waiting
    page.goto(f"{site.url}/runs/{run}/")
    edit_city(page, first, "Oslo")
    site.run("-c", DECIDE_UNNOTICED.format(first))

    form_of(page, first).locator("button[value=approve]").click()

    expect(page.locator("#run-banner [role=alert]")).to_contain_text(
        "ana already answered this: Approved."
    )
    expect(form_of(page, first)).to_have_count(0)
    assert no_problem(page)


@pytest.mark.slow
def test_all_answers_that_one_decision_drops_are_reported(page, site, waiting):
    run, _, first, second, third = waiting
    page.goto(f"{site.url}/runs/{run}/")
    edit_city(page, first, "Oslo")
    page.locator(f"#approval-banner-{second} > summary").click()
    form_of(page, second).locator("[name=reason]").fill("not in winter")

    approve_as_ana(page, site, third, alike=True)

    notice = (
        "book_table: ana already answered this: Approved. What you typed was not used."
    )
    expect(page.locator("#part-toasts [role=alert]")).to_contain_text(
        f"{notice} {notice}"
    )


@pytest.mark.slow
def test_a_later_decision_of_another_call_is_reported(page, site, waiting):
    run, _, first, second, _ = waiting
    page.goto(f"{site.url}/runs/{run}/")
    edit_city(page, first, "Oslo")
    page.locator(f"#approval-banner-{second} > summary").click()
    form_of(page, second).locator("[name=alike]").check()
    form_of(page, second).locator("button[value=reject]").click()
    expect(form_of(page, second)).to_have_count(0)
    assert no_problem(page)

    approve_as_ana(page, site, first)

    expect(page.locator("#part-toasts [role=alert]")).to_contain_text(
        "ana already answered this"
    )


@pytest.mark.parametrize("kind", ["chat", "run"])
def test_refused_arguments_are_shown_with_their_errors(page, site, waiting, kind):
    run, chat, first, second, _ = waiting
    path = f"/runs/{run}/" if kind == "run" else f"/chat/travel-planner/{chat}/"
    page.goto(site.url + path)
    edit_city(page, first, "Oslo")
    if kind == "run":
        page.locator(f"#approval-banner-{second} > summary").click()
    form_of(page, second).locator("summary:has-text('Edit arguments')").click()
    form_of(page, second).locator("label:has-text('JSON')").click()
    form_of(page, second).locator("[name=edited]").fill('{"city": 3')

    form_of(page, second).locator("button[value=approve]").click()

    expect(form_of(page, second).locator(".errors")).to_contain_text("bracket")
    assert form_of(page, second).locator("[name=edited]").input_value() == '{"city": 3'
    form_of(page, second).locator("[name=edited]").fill('{"city": "Rome"}')
    assert approve_edited(page, site, second)[:2] == ["approved", {"city": "Rome"}]
    assert approve_edited(page, site, first)[:2] == ["approved", {"city": "Oslo"}]
