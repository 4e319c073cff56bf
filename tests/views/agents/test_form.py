"""Making and changing an agent."""

import re

import pytest

from runs.models import Agent, PromptTemplate, ProviderModel
from tests.make import make_agent, make_prompt, make_provider, make_tool

pytestmark = pytest.mark.django_db


def typed(ann, **changes):
    return {
        "name": "planner",
        "kind": "tool-calling",
        "provider": make_provider(ann).pk,
        "model": "model-a",
        "source": "write",
        "instructions": "Plan a day in {city}.",
        "max_iterations": "15",
        "early_stopping_method": "force",
        "parsing": "tell",
        "loop_guard": "on",
        "visibility": "private",
    } | changes


def test_shows_the_form_with_the_exact_prompt(client, ann):
    make_provider(ann, default_model="best")

    page = client.get("/agents/new/").content.decode()

    assert 'value="best"' in page
    assert "exact first request" in page


def test_a_new_agent_begins_with_no_kinds_instructions(client, ann):
    make_provider(ann)

    form = client.get("/agents/new/").context["form"]

    assert not form["instructions"].value()


def test_without_a_provider_it_sends_to_where_one_is_made(client, ann):
    assert client.get("/agents/new/").headers["Location"] == "/providers/new/"


def test_saves_everything_that_was_chosen(client, ann):
    tool, other = make_tool(ann), make_tool(ann)
    choices = {f"tool-{tool.pk}": "ask", f"tool-{other.pk}": "off"}
    more = {"temperature": "0.5", "max_tokens": "900", "more": '{"seed": 7}'}
    limits = {"max_execution_time": "300", "budget_cost": "0.25"}

    answer = client.post("/agents/new/", typed(ann) | choices | more | limits)

    agent = Agent.objects.get()
    assert answer.headers["Location"] == f"/agents/{agent.pk}/edit/"
    assert agent.parameters == {"seed": 7, "temperature": 0.5, "max_tokens": 900}
    assert [(use.tool, use.policy) for use in agent.uses.all()] == [(tool, "ask")]
    assert agent.executor == {
        "max_execution_time": 300.0,
        "budget": {"cost": 0.25},
    }
    assert agent.prompt.messages[0]["template"] == "Plan a day in {city}."


def test_empty_instructions_mean_the_kinds_own_prompt(client, ann):
    client.post("/agents/new/", typed(ann, instructions=" "))

    assert Agent.objects.get().prompt is None


def test_instructions_of_a_text_kind_keep_its_format(client, ann):
    client.post("/agents/new/", typed(ann, kind="react", instructions="Be kind."))

    prompt = Agent.objects.get().prompt
    assert prompt.template.startswith("Be kind.\n\n")
    assert "{agent_scratchpad}" in prompt.template


def test_the_form_shows_the_instructions_again_without_the_format(client, ann):
    client.post("/agents/new/", typed(ann, kind="react", instructions="Be kind."))

    page = client.get(f"/agents/{Agent.objects.get().pk}/edit/").content.decode()

    field = page.split('name="instructions"')[1].split("</textarea>")[0]
    assert field.split(">")[1].strip() == "Be kind."


def test_a_prompt_of_the_library_can_be_used(client, ann):
    prompt = make_prompt(ann)

    client.post("/agents/new/", typed(ann, source="template", prompt=prompt.pk))

    assert Agent.objects.get().prompt == prompt


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        pytest.param({"name": ""}, "required", id="no-name"),
        pytest.param({"model": ""}, "required", id="no-model"),
        pytest.param({"max_iterations": "-1"}, "Enter 1 or more", id="iterations"),
        pytest.param({"max_iterations": "0"}, "Enter 1 or more", id="no-rounds"),
        pytest.param({"max_execution_time": "-5"}, "Must be 0 or more", id="time"),
        pytest.param({"budget_tokens": "-5"}, "0 or more", id="tokens"),
        pytest.param({"max_iterations": "many"}, "whole number", id="no-number"),
        pytest.param({"temperature": "9"}, "2 or less", id="hot"),
        pytest.param({"more": "{"}, "JSON. Line 1, column 2: a name in", id="no-json"),
        pytest.param({"more": "[1]"}, "Enter a JSON object", id="no-object"),
        pytest.param(
            {"instructions": "Use {inptu}."}, "not found. Did you mean", id="variable"
        ),
        pytest.param({"instructions": '{"a": 1}'}, "is not a variable", id="brace"),
        pytest.param({"source": "template"}, "Select a prompt", id="no-prompt"),
        pytest.param({"parsing": "say"}, "Enter the message", id="no-sentence"),
        pytest.param({"kind": "psychic"}, "Select a valid choice", id="kind"),
        pytest.param({"suggested_questions": "?\n" * 9}, "at most 8", id="questions"),
        pytest.param({"suggested_questions": "x" * 301}, "at most 300", id="question"),
        pytest.param({"provider": "999999"}, "Select a valid choice", id="provider"),
    ],
)
def test_refuses_bad_input_in_words_and_saves_nothing(client, ann, changes, says):
    given = typed(ann, description="Kept text") | changes

    answer = client.post("/agents/new/", given)

    page = answer.content.decode()
    assert answer.status_code == 200
    assert says in page
    assert 'value="Kept text"' in page
    assert not Agent.objects.exists()
    assert not PromptTemplate.objects.exists()


def test_refuses_two_tools_of_one_name(client, ann):
    tools = [make_tool(ann, name="search"), make_tool(ann, name="search")]
    choices = {f"tool-{tool.pk}": "allow" for tool in tools}

    page = client.post("/agents/new/", typed(ann) | choices).content.decode()

    assert "Two tools are named" in page
    assert not Agent.objects.exists()


def test_another_persons_things_cannot_be_taken(client, ann):
    tool = make_tool()
    foreign = typed(ann, provider=make_provider().pk) | {f"tool-{tool.pk}": "allow"}

    refused = client.post("/agents/new/", foreign)
    client.post("/agents/new/", typed(ann) | {f"tool-{tool.pk}": "allow"})

    assert refused.status_code == 200
    assert not Agent.objects.get().uses.exists()


def test_changes_are_saved_and_a_running_spec_is_not_touched(client, ann):
    agent = make_agent(ann, name="before")

    answer = client.post(f"/agents/{agent.pk}/edit/", typed(ann, name="after"))

    agent.refresh_from_db()
    assert answer.headers["Location"] == f"/agents/{agent.pk}/edit/"
    assert agent.name == "after"


def test_what_the_form_does_not_show_stays(client, ann):
    agent = make_agent(
        ann, executor={"observation_limit": 999, "return_intermediate_steps": True}
    )

    client.post(f"/agents/{agent.pk}/edit/", typed(ann))

    agent.refresh_from_db()
    assert agent.executor["observation_limit"] == 999
    assert agent.executor["return_intermediate_steps"] is True


def test_previews_the_exact_first_request_and_saves_nothing(client, ann):
    tool = make_tool(ann, name="look_up")
    given = typed(ann, instructions="Speak like {poet}.") | {f"tool-{tool.pk}": "ask"}

    answer = client.post("/agents/preview/", given, headers={"HX-Request": "true"})

    part = answer.content.decode()
    assert part.strip().startswith('<div class="stack" id="agent-preview-body"')
    assert "Speak like" in part
    assert "poet" in part
    assert "look_up" in part
    assert not Agent.objects.exists()


def test_the_preview_names_mistakes_while_one_types(client, ann):
    part = client.post(
        "/agents/preview/", typed(ann, max_iterations="-1", name="")
    ).content.decode()

    assert "Rounds: Enter 1 or more" in part
    assert "required" not in part.split("<main")[1]


def test_the_preview_shows_nothing_of_others(client, ann):
    secret = make_prompt(messages=[{"role": "user", "template": "TOP SECRET {input}"}])

    part = client.post(
        "/agents/preview/", typed(ann, source="template", prompt=secret.pk)
    ).content.decode()

    assert "TOP SECRET" not in part


def test_offers_the_models_of_the_chosen_provider(client, ann):
    mine, theirs = make_provider(ann), make_provider()
    ProviderModel.objects.create(provider=mine, name="my-model", context_tokens=32_768)
    ProviderModel.objects.create(provider=theirs, name="their-model")

    good = client.get(f"/agents/models/?provider={mine.pk}").content.decode()
    none = client.get(f"/agents/models/?provider={theirs.pk}").content.decode()

    assert '<option value="my-model" label="32,768 context">' in good
    assert "their-model" not in none


@pytest.mark.parametrize("name", ["tool-²", "tool-99999999999999999999", "tool-x"])
def test_nonsense_in_place_of_a_tool_is_left_out(client, ann, name):
    answer = client.post("/agents/new/", typed(ann) | {name: "allow"})

    assert answer.status_code == 302
    assert not Agent.objects.get().uses.exists()


def test_parameters_are_kept_as_a_database_can_keep_them(client, ann):
    client.post("/agents/new/", typed(ann, more='{"stop": "a\\u0000b"}'))

    assert "\0" not in Agent.objects.get().parameters["stop"]


def test_a_browser_keeps_the_page_and_its_part_apart(client, ann):
    agent = make_agent(ann)

    for headers in ({}, {"HX-Request": "true"}):
        answer = client.get(f"/agents/{agent.pk}/edit/?try=side", headers=headers)
        assert "HX-Request" in answer.headers["Vary"]


def test_a_number_that_no_table_holds_is_404(client, ann):
    assert client.get("/agents/99999999999999999999/edit/").status_code == 404


def test_the_context_and_the_shape_of_the_answer_are_saved_and_shown(client, ann):
    schema = '{"type": "object"}'
    given = {"context_tokens": "4000", "context_method": "summary"}
    client.post("/agents/new/", typed(ann) | given | {"output_schema": schema})

    agent = Agent.objects.get()
    assert agent.executor["context_tokens"] == 4000
    assert agent.executor["context_method"] == "summary"
    assert agent.executor["output_schema"] == {"type": "object"}
    page = client.get(f"/agents/{agent.pk}/edit/").content.decode()
    assert "{&quot;type&quot;: &quot;object&quot;}" in page


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        pytest.param({"output_schema": "{"}, "Not valid JSON. Line 1", id="no-json"),
        pytest.param({"output_schema": "[1]"}, "Enter a JSON Schema", id="no-object"),
        pytest.param(
            {"output_schema": '{"type": "no"}'}, "output_schema-error", id="no-schema"
        ),
        pytest.param({"context_tokens": "0"}, "context_tokens-error", id="no-room"),
    ],
)
def test_a_context_or_shape_that_cannot_be_is_refused(client, ann, changes, says):
    page = client.post("/agents/new/", typed(ann) | changes).content.decode()

    assert says in page
    assert not Agent.objects.exists()


def test_what_is_missing_or_too_small_is_reported_by_what_is_right(client, ann):
    wrong = typed(ann, name="", model="", max_tokens="0")

    page = client.post("/agents/new/", wrong).content.decode()

    assert all(
        words in page for words in ("Enter a name.", "Enter a value for", "1 or more.")
    )
    assert "This field is required" not in page


def test_a_new_agent_links_each_tool_to_its_page(client, ann):
    make_provider(ann)
    tool = make_tool(ann, name="search")

    page = client.get("/agents/new/?library=open").content.decode()

    assert f'href="/tools/{tool.slug}/"' in page


def test_a_fold_is_open_where_something_in_it_is_set(client, ann):
    bare = make_agent(ann)
    short = make_agent(ann, executor={"context_tokens": 900})
    fold = r"<details class=\"fold\"( open)?>\s*<summary>.{0,200}?%s</summary>"

    def is_open(agent, title):
        page = client.get(f"/agents/{agent.pk}/edit/").content.decode()
        return bool(re.search(fold % title, page)[1])

    assert not is_open(bare, "Context window")
    assert is_open(short, "Context window")
    assert not is_open(short, "Output format")


def test_the_kind_is_folded_unless_it_is_not_the_one_that_suits(client, ann):
    def is_open(agent):
        page = client.get(f"/agents/{agent.pk}/edit/").content.decode()
        return '<details class="fold" id="agent-kind" open>' in page

    assert not is_open(make_agent(ann, kind="tool-calling"))
    assert is_open(make_agent(ann, kind="react"))


def test_a_new_agent_remembers_the_conversation(client, ann):
    make_provider(ann)
    page = client.get("/agents/new/")
    client.post("/agents/new/", typed(ann))  # the box is not checked

    assert page.context["form"]["memory"].value() is True
    assert Agent.objects.get().memory is False


def test_suggested_questions_are_lines(client, ann):
    lines = " Where to?\n\nHow   far?\n"
    client.post("/agents/new/", typed(ann, suggested_questions=lines))
    agent = Agent.objects.get()

    page = client.get(f"/agents/{agent.pk}/edit/").content.decode()
    assert agent.suggested_questions == ["Where to?", "How far?"]
    assert "Where to?\nHow far?</textarea>" in page


def test_a_model_that_the_provider_does_not_list_is_warned_about(client, ann):
    provider = make_provider(ann, name="Mock", default_model="usual")
    ProviderModel.objects.create(provider=provider, name="listed")
    warning = "Provider Mock does not list model elsewhere."

    def saved_with(model):
        form = typed(ann, provider=provider.pk, model=model)
        return client.post("/agents/new/", form, follow=True).content.decode()

    assert saved_with("elsewhere").count(warning) == 2  # as a message and at the field
    assert "does not list" not in saved_with("listed")
    assert "does not list" not in saved_with("usual")


def test_publishing_warns_of_a_model_that_is_not_listed(client, ann):
    provider = make_provider(ann, name="Mock")
    ProviderModel.objects.create(provider=provider, name="listed")
    agent = make_agent(ann, provider=provider, model="elsewhere")

    page = client.post(f"/agents/{agent.pk}/publish/", follow=True).content.decode()

    assert "Provider Mock does not list model elsewhere." in page


def test_a_provider_whose_models_are_unknown_is_not_warned_about(client, ann):
    agent = make_agent(ann, provider=make_provider(ann), model="anything")

    assert (
        "does not list" not in client.get(f"/agents/{agent.pk}/edit/").content.decode()
    )
