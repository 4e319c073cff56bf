"""Prompts: list, form, preview."""

import pytest

from runs.models import PromptTemplate
from tests.make import make_agent, make_prompt

pytestmark = pytest.mark.django_db

REACT = "{tools} {tool_names} {input} {agent_scratchpad}"
TEXT = {
    "name": "mine",
    "kind": "react",
    "shape": "text",
    "template": REACT,
    "visibility": "private",
}
CHAT = {
    "name": "chat",
    "kind": "tool-calling",
    "shape": "messages",
    "role": ["system", "user", "user"],
    "message": ["Plan a day in {city}.", "{input}", ""],
    "visibility": "private",
}


def test_shows_the_list_and_hides_what_is_someone_elses(client, ann):
    make_prompt(ann, name="My prompt")
    make_prompt(name="Their prompt")

    page = client.get("/prompts/").content.decode()

    assert "My prompt" in page
    assert "Their prompt" not in page


def test_a_new_one_begins_with_the_kinds_own(client, ann):
    page = client.get("/prompts/new/?kind=react").content.decode()

    assert "{agent_scratchpad}" in page
    assert 'name="template"' in page


def test_a_new_one_can_begin_with_instructions(client, ann):
    page = client.get("/prompts/new/?kind=self-ask&start=expert").content.decode()

    assert "You answer questions about {field}" in page
    assert "Intermediate answer:" in page
    assert 'start=researcher"' in page


def test_saves_a_text(client, ann):
    answer = client.post("/prompts/new/", TEXT)

    prompt = PromptTemplate.objects.get()
    assert answer.headers["Location"] == f"/prompts/{prompt.pk}/"
    assert (prompt.template, prompt.messages) == (REACT, None)


def test_saves_messages_and_leaves_out_empty_ones(client, ann):
    client.post("/prompts/new/", CHAT | {"values": "city = 北京"})

    prompt = PromptTemplate.objects.get()
    assert prompt.messages == [
        {"role": "system", "template": "Plan a day in {city}."},
        {"role": "user", "template": "{input}"},
    ]
    assert prompt.partials == {"city": "北京"}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        pytest.param(
            {"template": "{tools} {input}"}, "{agent_scratchpad}", id="no-scratchpad"
        ),
        pytest.param(
            {"template": REACT + "{inptu}"}, "Did you mean {input}?", id="slip-of-input"
        ),
        pytest.param(
            {"template": REACT + "{tool_name}"},
            "Variable {tool_name} not found",
            id="unknown-variable",
        ),
        pytest.param(
            {"template": REACT + "\n{not a name}"}, "is not a variable", id="brace"
        ),
        pytest.param({"template": " "}, "Enter the text of the prompt", id="empty"),
        pytest.param({"values": "no sign"}, "Line 1 is not a value", id="value"),
        pytest.param({"name": ""}, "required", id="no-name"),
        pytest.param({"kind": "nope"}, "Select a valid choice", id="kind"),
    ],
)
def test_refuses_bad_input_at_its_field_and_keeps_it(client, ann, changes, says):
    answer = client.post("/prompts/new/", TEXT | changes)

    page = answer.content.decode()
    assert answer.status_code == 200
    assert says in page
    assert not PromptTemplate.objects.exists()


def test_refuses_messages_with_a_flaw_and_keeps_them(client, ann):
    wrong = CHAT | {"message": ["Plan {a day}.", "{input}", ""]}

    page = client.post("/prompts/new/", wrong).content.decode()

    assert "is not a variable" in page
    assert "Plan {a day}." in page
    assert not PromptTemplate.objects.exists()


def test_a_shared_prompt_is_shown_but_only_its_owner_edits_it(client, ann):
    prompt = make_prompt(name="Shared", visibility="everyone")

    page = client.get(f"/prompts/{prompt.pk}/").content.decode()
    client.post(f"/prompts/{prompt.pk}/", CHAT)

    prompt.refresh_from_db()
    assert "First request" in page
    assert prompt.name == "Shared"


def test_a_stranger_gets_404(client, ann):
    pk = make_prompt().pk

    assert client.get(f"/prompts/{pk}/").status_code == 404
    assert client.post(f"/prompts/{pk}/archive/").status_code == 404


def test_previews_what_a_model_would_get_without_saving(client, ann):
    answer = client.post("/prompts/preview/", TEXT, headers={"HX-Request": "true"})

    part = answer.content.decode()
    assert part.strip().startswith('<section class="card" id="prompt-preview"')
    assert "weather, calculator" in part
    assert not PromptTemplate.objects.exists()


def test_previews_as_a_page_without_a_script(client, ann):
    page = client.post("/prompts/preview/", CHAT).content.decode()

    assert "<html" in page
    assert "city" in page


def test_the_preview_names_the_mistakes(client, ann):
    wrong = TEXT | {"template": "no variables at all"}

    part = client.post("/prompts/preview/", wrong).content.decode()

    assert "{agent_scratchpad}" in part


def test_instructions_of_one_agent_are_not_in_the_list(client, ann):
    agent = make_agent(ann)
    make_prompt(ann, name="Its own", slug=f"instructions-{agent.pk}")

    assert "Its own" not in client.get("/prompts/").content.decode()


def test_characters_that_no_database_keeps_are_replaced(client, ann):
    client.post("/prompts/new/", CHAT | {"message": ["a\0b", "{input}", ""]})

    assert "\0" not in PromptTemplate.objects.get().messages[0]["template"]


def test_private_agents_of_others_are_counted_and_not_named(client, ann):
    prompt = make_prompt(ann, visibility="everyone")
    make_agent(ann, prompt=prompt, name="Own agent")
    make_agent(prompt=prompt, name="Their secret plan")

    page = client.get(f"/prompts/{prompt.pk}/").content.decode()

    assert "Own agent" in page
    assert "Their secret plan" not in page
    assert "1 agent of other users" in " ".join(page.split())
