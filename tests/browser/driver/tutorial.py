"""The steps of docs/tutorial-evaluation.md, for its test and for its pictures."""

import re
from collections.abc import Callable

from playwright.sync_api import Locator, Page, expect

from tests.browser.driver.editor import open_editor
from tests.faults.site import Site

QUESTION = "Plan a day out in Oslo that fits the weather"
COMMENT = "No plan and no weather. The answer only describes itself."
WAIT = 240_000
"""Milliseconds that workers of a busy machine get for an experiment."""

Picture = Callable[[str, int], None]
"""Takes a picture of the page below its top bar: name, and height in pixels."""


def enter(page: Page, site: Site) -> str:
    """Sign in by the link of the first start; return the address of the site."""
    site.wait_for("Press Ctrl-C to stop")
    page.goto(site.login_link)
    page.get_by_role("button", name="Sign in").click()
    url = site.login_link.partition("/login/")[0]
    page.wait_for_url(f"{url}/")
    return url


def take_none(name: str, height: int) -> None:
    """Take no picture."""


def publish(page: Page, number: int, note: str) -> None:
    page.locator("summary", has_text=f"Publish version {number}").click()
    page.get_by_label("What is new").fill(note)
    form = page.locator("#agent-publish")
    form.get_by_role("button", name="Publish", exact=True).click()
    expect(page.get_by_text(f"Version {number} published")).to_be_visible()


def edit(page: Page) -> None:
    page.get_by_role("link", name="Edit", exact=True).click()
    page.wait_for_url(re.compile(r"/edit/$"))  # with its scripts


def permit_weather(page: Page | Locator, policy: str) -> None:
    page.get_by_label("Permission of weather_sample").select_option(policy)


def wait_for_draft(page: Page, text: str) -> None:
    expect(page.locator("#agent-state")).to_contain_text(text)


def break_the_agent(page: Page, url: str) -> None:
    """Publish two versions: one without its tool, and one more."""
    page.goto(f"{url}/agents/")
    page.get_by_role("link", name="Travel planner").first.click()
    edit(page)
    permit_weather(page, "Not used")
    wait_for_draft(page, "1 change since version 1")
    publish(page, 2, "Fewer tools")
    edit(page)
    page.get_by_label("Description").first.fill("Plans a day trip.")
    wait_for_draft(page, "1 change since version 2")
    publish(page, 3, "Shorter description")


def complain(page: Page, url: str, picture: Picture) -> None:
    """Ask in the chat, rate the answer, and comment on the run."""
    page.goto(f"{url}/chat/travel-planner/")
    page.get_by_role("button", name=QUESTION).click()
    page.get_by_role("button", name="Bad answer").click(timeout=WAIT)
    page.goto(f"{url}/runs/?rating=bad")
    page.get_by_role("link", name=QUESTION).first.click()
    page.locator("summary", has_text="Comments").click()
    page.get_by_label("Comment", exact=True).fill(COMMENT)
    page.get_by_role("button", name="Add comment").click()
    expect(page.locator("#run-feedback article")).to_contain_text(COMMENT)
    picture("complaint", 573)


def collect_examples(page: Page) -> None:
    """Turn the run into an example, add two by hand, and save the version."""
    page.get_by_role("link", name="Add to dataset").first.click()
    page.get_by_label("Name of the new dataset").fill("Day trips")
    page.get_by_label("Expected answer").fill("A day out in Oslo")
    page.get_by_label("Tags").fill("complaint")
    page.get_by_role("button", name="Add to dataset").click()
    for text, answer in (
        ("Plan a day out in Paris", "A day out in Paris"),
        ("Who are you?", "I am the demo model"),
    ):
        page.get_by_role("link", name="Add example").click()
        row = page.locator("#dataset-examples tbody tr").last
        row.locator("[data-field='input:input'] .cellbox").fill(text)
        page.keyboard.press("Tab")
        row.locator("[data-field=answer] .cellbox").fill(answer)
        page.keyboard.press("Enter")
        expect(row.locator("[data-field=answer]")).to_have_text(answer)
    page.get_by_role("button", name="Save version 1").click()
    expect(page.get_by_text("Version 1 saved, with 3 examples.")).to_be_visible()


def create_evaluator(page: Page, url: str) -> None:
    """Create an evaluator, tried on the run first."""
    open_part(page, url, "Evaluators")
    page.get_by_role("link", name="New evaluator").first.click()
    page.get_by_role("link", name="Contains").click()
    page.wait_for_load_state()
    page.get_by_label("Name", exact=True).fill("Right plan")
    trial = page.locator("#evaluator-trial")
    trial.get_by_label("Run", exact=True).fill("1")
    trial.get_by_label("Expected answer").fill("A day out in Oslo")
    trial.get_by_role("button", name="Try").click()
    expect(trial).to_contain_text("Not found: 'A day out in Oslo'.")
    page.get_by_role("button", name="Create evaluator").click()
    expect(page.get_by_text("Evaluator Right plan created.")).to_be_visible()


def open_part(page: Page, url: str, name: str) -> None:
    """Open a part of *Evaluation*."""
    page.goto(f"{url}/")
    page.get_by_role("link", name="Evaluation", exact=True).click()
    page.get_by_label("Evaluation", exact=True).get_by_role("link", name=name).click()


def change_instructions(page: Page, url: str) -> None:
    """Try the first idea: other instructions."""
    page.goto(f"{url}/agents/1/edit/")
    open_editor(page.locator("#agent-instructions .editor"))
    page.keyboard.type("Always answer with a plan for the day.")
    wait_for_draft(page, "since version 3")


def run_experiment(page: Page, url: str, picture: Picture) -> None:
    """Compare the published version with the draft."""
    open_part(page, url, "Datasets")
    page.get_by_role("link", name="Day trips").click()
    page.get_by_role("link", name="New experiment").click()
    page.get_by_label("Agent").select_option(label="Travel planner")
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_label("Version 3")).to_be_checked()
    expect(page.get_by_label("Draft")).to_be_checked()
    page.get_by_label("Right plan").check()
    page.get_by_label("Name", exact=False).fill("Day trips")
    page.get_by_role("button", name="Start experiment").click()
    wait_for_verdict(page, "B does the same as A on all 3 examples.")
    page.locator("#experiment-table tbody tr").first.locator("a.cell").nth(1).click()
    expect(page.locator("#experiment-selected")).to_contain_text("Not found:")
    picture("experiment", 696)


def wait_for_verdict(page: Page, text: str) -> None:
    expect(page.locator(".verdict h2")).to_contain_text(text, timeout=WAIT)
    page.reload()  # without the message about the start


def find_the_version(page: Page, picture: Picture) -> None:
    """Search for the version at which the example began to fail."""
    page.get_by_role("link", name="Find the first failing version").click()
    page.get_by_role("button", name="Start search").click()
    wait_for_verdict(page, "Fails since version 2; version 1 passes.")
    picture("search", 350)
    page.get_by_role("link", name="Compare the two versions").click()
    expect(page.locator("main")).to_contain_text("Tool weather_sample Removed")


def repair(page: Page, url: str) -> None:
    """Empty the instructions again, and give the tool back."""
    page.goto(f"{url}/agents/1/edit/")
    open_editor(page.locator("#agent-instructions .editor"))
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    wait_for_draft(page, "Same as version 3")
    page.get_by_role("link", name="Add tools and agents").click()
    permit_weather(page.locator("#agent-library"), "Default")
    page.get_by_role("button", name="Done").click()
    wait_for_draft(page, "1 change since version 3")


def run_again(page: Page, url: str) -> None:
    """Repeat the experiment with the repaired draft."""
    open_part(page, url, "Experiments")
    page.get_by_role("link", name="Day trips", exact=True).click()
    page.get_by_role("link", name="Run again").click()
    expect(page.get_by_label("Right plan")).to_be_checked()
    page.get_by_role("button", name="Start experiment").click()
    wait_for_verdict(page, "2 of 3 examples improved, 0 regressed.")


def set_up_gate(page: Page, url: str) -> None:
    """Require the dataset, and publish what has passed it."""
    page.goto(f"{url}/agents/1/edit/")
    page.locator("summary", has_text="Publish version 4").click()
    page.get_by_role("link", name="Gate, replay and changes").click()
    page.get_by_role("link", name="Set up a gate").click()
    page.get_by_label("Dataset").select_option(label="Day trips")
    page.get_by_label("Right plan").check()
    page.get_by_label("Minimum pass rate in percent").fill("100")
    page.get_by_role("button", name="Save gate").click()
    expect(page.locator("#publish-gate")).to_contain_text("Gate met")
    page.get_by_label("What is new").fill("The weather tool is back")
    page.get_by_role("button", name="Publish version 4").click()
    expect(page.get_by_text("Version 4 published")).to_be_visible()


def meet_the_gate(page: Page, picture: Picture) -> None:
    """Remove the tool again: the gate refuses the draft."""
    edit(page)
    permit_weather(page, "Not used")
    wait_for_draft(page, "1 change since version 4")
    page.locator("summary", has_text="Publish version 5").click()
    form = page.locator("#agent-publish")
    form.get_by_role("button", name="Publish", exact=True).click()
    gate = page.locator("#publish-gate")
    expect(gate).to_contain_text("1 of 3 rules not met", timeout=WAIT)
    expect(page.get_by_role("button", name="Publish anyway")).to_be_visible()
    picture("gate", 446)


def restore(page: Page, url: str) -> None:
    """Bring the draft back to the published version."""
    page.goto(f"{url}/agents/1/versions/")
    page.get_by_role("button", name="Restore").first.click()
    wait_for_draft(page, "Same as version 4")


def watch_real_runs(page: Page, url: str, picture: Picture) -> None:
    """Score real runs by an evaluator that expects no answer."""
    open_part(page, url, "Evaluators")
    page.get_by_role("link", name="New evaluator").click()
    page.get_by_role("link", name="Contains").click()
    page.wait_for_load_state()
    page.get_by_label("Name", exact=True).fill("No excuse")
    page.locator("#evaluator-settings").get_by_label("Texts").first.fill(
        "I follow a script"
    )
    needs = page.get_by_label("Texts that must be found")
    needs.select_option(label="None of them")
    page.get_by_role("button", name="Create evaluator").click()
    open_part(page, url, "Rules")
    page.get_by_role("link", name="New rule").click()
    page.get_by_label("Name", exact=True).fill("Watch day trips")
    page.get_by_label("Agent").select_option(label="Travel planner")
    page.get_by_label("No excuse").check()
    page.get_by_label("Percent of the runs").fill("100")
    page.get_by_label("Dataset").select_option(label="Day trips")
    page.get_by_role("button", name="Create rule").click()
    expect(page.get_by_role("heading", name="Watch day trips")).to_be_visible()
    rule = page.url
    for question in (QUESTION, "Where is my refund?"):
        page.goto(f"{url}/chat/travel-planner/")
        page.get_by_label("Message Travel planner").fill(question)
        page.get_by_role("button", name="Send").click()
        page.get_by_role("button", name="Bad answer").wait_for(timeout=WAIT)
    page.goto(rule)
    totals = page.locator("#rule-totals")
    for _ in range(WAIT // 1000):
        if "50.0%" in totals.inner_text():
            break
        page.wait_for_timeout(1000)
        page.reload()
    expect(totals).to_contain_text("50.0%")
    expect(page.locator("#rule-runs tbody tr")).to_have_count(2)
    picture("rule", 576)


def walk_to_the_gate(page: Page, url: str, picture: Picture = take_none) -> None:
    """Follow the tutorial until the gate refuses a draft."""
    break_the_agent(page, url)
    complain(page, url, picture)
    collect_examples(page)
    create_evaluator(page, url)
    change_instructions(page, url)
    run_experiment(page, url, picture)
    find_the_version(page, picture)
    repair(page, url)
    run_again(page, url)
    set_up_gate(page, url)
    meet_the_gate(page, picture)


def walk_to_the_end(page: Page, url: str, picture: Picture = take_none) -> None:
    """Follow the rest of the tutorial."""
    restore(page, url)
    watch_real_runs(page, url, picture)
