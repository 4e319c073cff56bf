"""The pages on which an agent is built: no fault by WCAG, keys, and a phone."""

import pytest
from playwright.sync_api import expect

from tests.browser.driver.axe import violations
from tests.browser.driver.chromium import listen, overflow, signed_in
from tests.browser.driver.editor import OPTIONS, open_editor
from tests.browser.shots import PAGES
from tests.support.timing import wait_until

pytestmark = pytest.mark.browser


def test_variables_are_completed_by_keys_alone(browser, lived_in):
    context = browser.new_context()
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(f"{lived_in.url}/agents/new/")

    page.fill("input[name=name]", "by-keys")
    open_editor(page.locator(".editor"))
    page.keyboard.press("Control+End")
    page.keyboard.type("Say {")
    expect(page.locator(OPTIONS)).to_contain_text(
        "the question of the run", timeout=20_000
    )
    page.keyboard.type("inp")
    expect(page.locator(f"{OPTIONS} li")).to_have_count(1, timeout=20_000)
    page.keyboard.press("Tab")
    page.keyboard.type(" / {")
    page.keyboard.press("Escape")

    text = page.input_value("textarea[name=instructions]")
    assert text.startswith("Say {input} / {")
    expect(page.locator(".editor footer")).to_contain_text("1 variable: input")
    expect(page.locator("textarea[name=instructions]")).to_be_focused()
    context.close()


def test_on_a_phone_one_pane_shows_at_a_time(browser, lived_in):
    context = browser.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True
    )
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(f"{lived_in.url}/agents/1/edit/")

    expect(page.locator("#agent-try")).to_be_hidden()
    page.tap(".views a:has-text('Test')")

    expect(page.locator("#agent-try .answer table")).to_be_visible()
    expect(page.locator("#agent-form")).to_be_hidden()
    assert overflow(page) == 0
    context.close()


LONG_CHAT = """() => {
    const text = document.createElement("p");
    text.style.height = "3000px";
    document.querySelector("#agent-try [data-follow]").append(text);
}"""


def test_on_a_phone_the_test_chat_opens_at_its_end(browser, lived_in):
    context = browser.new_context(viewport={"width": 390, "height": 844})
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(f"{lived_in.url}/agents/1/edit/")
    page.evaluate(LONG_CHAT)

    page.click(".views [data-view='2']")

    wait_until(lambda: page.evaluate("scrollY") > 2000)
    below = "document.documentElement.scrollHeight - innerHeight - scrollY"
    assert page.evaluate(below) < 2
    context.close()


def test_publishing_is_offered_once_the_draft_differs(browser, lived_in):
    context = browser.new_context()
    page = signed_in(context, lived_in.url, "admin", "admin")
    offer, message = (
        page.locator(".publish > summary"),
        page.locator("[name=description]"),
    )

    page.goto(f"{lived_in.url}/agents/3/edit/")
    message.fill("Reads tables.")
    offer.click(timeout=20_000)
    page.click("#agent-publish button")
    page.wait_for_url("**/agents/3/")
    page.goto(f"{lived_in.url}/agents/3/edit/")

    expect(page.locator("#agent-state")).to_contain_text("Same as version")
    expect(offer).to_be_hidden()
    message.fill("Reads tables and explains them.")
    expect(offer).to_be_visible(timeout=20_000)
    message.fill("Reads tables.")
    expect(offer).to_be_hidden(timeout=20_000)
    context.close()


@pytest.mark.slow
def test_publishing_is_undone_and_an_older_version_published_again(browser, lived_in):
    context = browser.new_context()
    page = signed_in(context, lived_in.url, "admin", "admin")
    toast = page.locator("#part-toasts .toast:visible")
    newest = page.locator("#agent-version-list .tag").nth(1)
    page.goto(f"{lived_in.url}/agents/3/versions/")
    number = int(newest.inner_text().removeprefix("v"))

    page.goto(f"{lived_in.url}/agents/3/edit/")
    page.fill("[name=description]", "Reads tables, but slowly.")
    page.locator(".publish > summary").click(timeout=20_000)
    page.click("#agent-publish button")
    expect(toast).to_contain_text(f"Version {number + 1} published", timeout=20_000)
    toast.get_by_role("button", name="Undo").click()

    expect(toast).to_contain_text(f"again, as version {number + 2}")
    expect(toast.get_by_role("button", name="Undo")).to_have_count(0)
    page.wait_for_url("**/agents/3/")
    page.goto(f"{lived_in.url}/agents/3/versions/")
    expect(newest).to_have_text(f"v{number + 2}")
    older = page.locator(f"#agent-version-{number + 1}")
    expect(older).to_be_visible()
    other = context.new_page()
    other.goto(f"{lived_in.url}/agents/3/versions/{number + 1}/publish/")
    assert violations(other) == []
    older.get_by_role("link", name="again").click()
    page.fill("[name=note]", "Slow, but right")
    page.click(f"text=Publish version {number + 3}")
    expect(newest).to_have_text(f"v{number + 3}")
    other.click(f"text=Publish version {number + 3}")
    expect(other.get_by_text("Not published")).to_contain_text(
        f"runs use version {number + 3} by now"
    )
    page.goto(f"{lived_in.url}/agents/3/edit/")
    expect(page.locator("[name=description]")).to_have_value(
        "Reads tables, but slowly."
    )
    context.close()


CUT = """() => {
  document.querySelectorAll("details").forEach((fold) => { fold.open = true; });
  const pen = document.createElement("canvas").getContext("2d");
  return [...document.querySelectorAll("select.input")].flatMap((one) => {
    const look = getComputedStyle(one);
    const edge = parseFloat(look.paddingLeft) + parseFloat(look.paddingRight);
    const room = one.clientWidth - edge;
    pen.font = look.font;
    return [...one.options].map((option) => option.text)
      .filter((text) => one.clientWidth && pen.measureText(text).width > room + 1);
  });
}"""


TOO_WIDE = """() => [...document.querySelectorAll("#agent-version-list li")]
    .filter((row) => row.scrollWidth > row.clientWidth).length"""


def test_on_a_phone_no_choice_is_cut_and_every_way_is_there(browser, lived_in):
    context = browser.new_context(viewport={"width": 390, "height": 844})
    page = signed_in(context, lived_in.url, "admin", "admin")
    cut = {}

    for name in ("agent-edit", "agent-tool", "provider", "provider-new", "playground"):
        page.goto(lived_in.url + PAGES[name])
        cut[name] = page.evaluate(CUT)
    page.goto(lived_in.url + PAGES["agent-edit"])
    page.click(".run-head summary:has-text('More')")

    assert {name: texts for name, texts in cut.items() if texts} == {}
    expect(page.locator(".run-head .menu a:has-text('Run')")).to_be_visible()
    page.click(".run-head .menu a:has-text('Versions')")
    page.wait_for_url("**/agents/1/versions/")
    assert page.evaluate(TOO_WIDE) == 0
    context.close()


@pytest.mark.slow
def test_back_leads_through_the_ways_to_try_and_keeps_what_is_typed(browser, lived_in):
    context = browser.new_context()
    page = signed_in(context, lived_in.url, "admin", "admin")
    received, message = listen(page), page.locator("[name=description]")
    page.goto(f"{lived_in.url}/agents/1/edit/")
    was = message.input_value()

    page.click("a:has-text('Compare')")
    expect(page.locator("#agent-side")).to_be_visible()
    page.click("a:has-text('Exact prompt')")
    expect(page.locator("#agent-preview-body")).to_be_visible()
    message.fill("Typed just before Back")
    page.go_back()
    expect(page.locator("#agent-side")).to_be_visible()

    assert message.input_value() == "Typed just before Back"
    expect(page.locator(".editor")).to_have_count(1)
    page.go_back()
    expect(page.locator("#agent-chat")).to_be_visible()
    message.fill(was)
    expect(page.locator("[data-saved]")).to_contain_text(
        "saved", ignore_case=True, timeout=20_000
    )
    page.goto(f"{lived_in.url}/agents/1/")
    page.go_back()
    expect(page.locator("#agent-form")).to_be_visible()
    assert received == []
    context.close()


def test_another_provider_brings_its_usual_model(browser, lived_in):
    context = browser.new_context()
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(f"{lived_in.url}/agents/new/")
    model = page.locator("[name=model]")

    page.select_option("[name=provider]", label="local")
    expect(model).to_have_value("qwen3:32b")
    expect(page.locator("#agent-models")).to_contain_text("suits qwen3:32b")
    model.fill("one-of-my-own")
    model.blur()
    expect(page.locator("#agent-models")).to_contain_text(
        "Provider local does not list model one-of-my-own."
    )
    page.select_option("[name=provider]", label="demo")
    expect(model).to_have_value("demo")
    context.close()


def test_the_kind_follows_the_model_until_one_is_selected(browser, lived_in):
    context = browser.new_context()
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(f"{lived_in.url}/agents/new/")
    kind, model = page.locator("[name=kind]:checked"), page.locator("[name=model]")
    page.select_option("[name=provider]", label="local")
    expect(page.locator("#agent-models")).to_contain_text("suits qwen3:32b")
    expect(kind).to_have_value("tool-calling")

    model.fill("gemma3:27b")
    model.blur()

    expect(kind).to_have_value("react")
    page.click("#agent-kind summary")
    page.check("[name=kind][value=json-chat]")
    model.fill("qwen3:32b")
    model.blur()
    expect(page.locator("#agent-models")).to_contain_text("suits qwen3:32b")
    expect(kind).to_have_value("json-chat")
    context.close()


def test_a_slow_answer_about_a_model_gives_way_to_the_last_one(browser, lived_in):
    context = browser.new_context()
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(f"{lived_in.url}/agents/new/")
    page.select_option("[name=provider]", label="local")
    expect(page.locator("#agent-models")).to_contain_text("suits qwen3:32b")
    slow = ("first", "second")
    page.route(
        "**/agents/models/**",
        lambda route: (
            None
            if any(f"model={name}" in route.request.url for name in slow)
            else route.continue_()
        ),
    )

    for name in (*slow, "third"):
        page.locator("[name=model]").fill(name)
        page.locator("[name=model]").blur()

    expect(page.locator("#agent-models")).to_contain_text("does not list model third")
    context.close()


def test_the_models_of_the_provider_are_offered_at_once(browser, lived_in):
    context = browser.new_context()
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(f"{lived_in.url}/agents/new/")

    page.select_option("[name=provider]", label="local")
    field = page.get_by_role("combobox", name="Model")
    expect(field).to_have_value("qwen3:32b")
    field.click()
    option = page.locator(".combo-popup [role=option]").filter(has_text="qwen3:32b")
    expect(option).to_have_attribute("aria-selected", "true")
    expect(option).to_contain_text(
        "32,768 context · tool calls · $0.10 in, $0.30 out per 1M"
    )
    assert violations(page, ["cat.aria"]) == []
    field.fill("QWEN")
    expect(page.locator(".combo-popup [role=option]")).to_have_count(1)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")

    expect(field).to_have_value("qwen3:32b")
    expect(page.locator(".combo-popup")).to_be_hidden()
    assert page.url.endswith("/agents/new/")
    context.close()


def test_a_provider_without_known_models_keeps_none_of_another(browser, lived_in):
    context = browser.new_context()
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(f"{lived_in.url}/providers/new/")
    page.fill("[name=name]", "unlisted")
    page.fill("[name=base_url]", "http://127.0.0.1:9/v1")
    page.click("#provider-form button:has-text('Save')")
    page.goto(f"{lived_in.url}/agents/new/")

    page.select_option("[name=provider]", label="unlisted")

    expect(page.locator("[name=model]")).to_have_value("")
    expect(page.locator("[name=model]")).to_be_visible()
    context.close()


def open_library(page, site):
    """Open the dialog with the tools that a new agent can add."""
    page.goto(f"{site.url}/agents/new/")
    page.click("a:has-text('Add tools and agents')")
    expect(page.locator("#agent-library-table")).to_be_visible()


def test_a_search_of_the_library_that_finds_nothing_says_so(browser, lived_in):
    context = browser.new_context()
    page = signed_in(context, lived_in.url, "admin", "admin")
    open_library(page, lived_in)
    none = page.locator("#agent-library-none")

    page.fill("[data-filter]", "no tool is called this")
    expect(none).to_be_visible()
    page.fill("[data-filter]", "")
    expect(none).to_be_hidden()
    expect(page.locator("#agent-library-table tr:visible").nth(1)).to_be_visible()
    page.select_option("[data-library-group]", "Agents")
    assert page.locator("#agent-library-table tbody th:visible").count() == 1
    assert violations(page, ["cat.aria"]) == []
    context.close()


def test_an_added_tool_is_counted_and_joins_those_of_the_agent(browser, lived_in):
    context = browser.new_context()
    page = signed_in(context, lived_in.url, "admin", "admin")
    open_library(page, lived_in)
    row = page.locator("#agent-library-table tr[data-find]:visible").nth(3)
    on, off = page.locator("[data-on-count]"), page.locator("[data-off-count]")
    name, rest, place = (
        row.get_attribute("id"),
        int(off.inner_text()),
        row.bounding_box(),
    )

    row.locator("select").select_option("Always ask")

    expect(on).to_have_text("1")
    expect(off).to_have_text(str(rest - 1))
    added = page.locator(f"#agent-library-table #{name}")
    assert added.bounding_box(timeout=10_000) == place
    page.keyboard.press("Escape")
    used = page.locator(f"#agent-tool-table #{name}")
    expect(used).to_be_visible()
    expect(page.locator("#agent-no-tools")).to_be_hidden()
    used.locator("select").select_option("Not used")
    expect(on).to_have_text("0")
    expect(off).to_have_text(str(rest))
    context.close()


def test_many_tools_take_few_tab_stops(browser, lived_in):
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = signed_in(context, lived_in.url, "admin", "admin")
    open_library(page, lived_in)
    page.evaluate(MANY_TOOLS)
    page.locator("#agent-library [data-filter]").fill("a")
    stops = 0

    while not page.evaluate("document.activeElement.matches('[data-close]')"):
        page.keyboard.press("Tab")
        stops += 1
        assert stops <= 60
    page.keyboard.press("Enter")

    page.locator("#agent-model summary").focus()
    stops = 0
    while not page.evaluate("document.activeElement.name === 'max_iterations'"):
        page.keyboard.press("Tab")
        stops += 1
        assert stops <= 10
    context.close()


def test_a_skip_link_leads_past_the_tools_without_a_script(browser, lived_in):
    context = browser.new_context(java_script_enabled=False)
    page = signed_in(context, lived_in.url, "admin", "admin")
    page.goto(f"{lived_in.url}/agents/1/edit/")

    page.get_by_role("link", name="Skip the tools").focus(timeout=10_000)
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")

    expect(page.locator("#agent-limits input").first).to_be_focused()
    context.close()


MANY_TOOLS = """() => {
  const body = document.querySelector("#agent-library-table tbody:last-child");
  const row = body.querySelector("tr[data-find]");
  for (let n = 0; n < 300; n += 1) body.append(row.cloneNode(true));
}"""
