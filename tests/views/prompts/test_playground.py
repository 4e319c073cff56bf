"""The playground: columns of messages, their variables, their results."""

import re

import pytest

from runs.engine.types import AgentSpec, ModelSettings, PromptSpec
from runs.models import Run
from runs.store.specs import get_or_create_spec
from tests.make import (
    make_call,
    make_prompt,
    make_provider,
    make_run,
    make_user,
)

pytestmark = pytest.mark.django_db


def typed(provider, **changes):
    return {
        "c1-model": f"{provider.pk}:model-a",
        "c1-role": ["system", "user"],
        "c1-text": ["Be brief.", "{input} in {city}"],
        "input": "What to see",
        "in-city": "北京",
        "do": "run",
    } | changes


def second(provider):
    return {
        "c2-model": f"{provider.pk}:model-a",
        "c2-role": ["user"],
        "c2-text": ["In {lang}: {input}"],
        "c2-temperature": "0.5",
        "c2-more": '{"seed": 7}',
        "in-lang": "Deutsch",
    }


def test_shows_a_column_to_begin_with(client, ann):
    make_provider(ann)

    page = client.get("/playground/").content.decode()

    assert 'name="c1-text"' in page
    assert 'name="input"' in page


def test_without_a_provider_it_sends_to_where_one_is_made(client, ann):
    assert client.get("/playground/").headers["Location"] == "/providers/new/"


def test_runs_each_column_and_shows_them_with_what_was_typed(client, ann):
    provider = make_provider(ann)

    answer = client.post("/playground/", typed(provider) | second(provider))

    one, two = Run.objects.order_by("pk")
    assert answer.headers["Location"] == f"/playground/?runs={one.pk}-{two.pk}"
    assert (one.is_test, two.is_test) == (True, True)
    assert two.spec.body["model"]["parameters"] == {"seed": 7, "temperature": 0.5}
    page = client.get(answer.headers["Location"]).content.decode()
    assert f'hx-sse:connect="/live/turns/{one.pk}-{two.pk}/"' in page
    assert "{input} in {city}" in page
    assert "Deutsch" in page
    assert "{&quot;seed&quot;: 7}" in page
    assert page.count('id="turn-answer-') == 2


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        pytest.param({"in-city": ""}, "Enter a value for", id="no value"),
        pytest.param({"c1-text": ["", "{x"]}, "is not a variable", id="brace"),
        pytest.param(
            {"c1-text": ["", " "]}, "Enter a message for the model", id="empty"
        ),
        pytest.param({"c1-model": "9:none"}, "Select a valid choice", id="model"),
        pytest.param({"c1-temperature": "9"}, "2 or less", id="hot"),
        pytest.param({"c1-max_tokens": "0"}, "1 or more", id="short"),
        pytest.param({"c1-more": "[1]"}, "Enter a JSON object", id="parameters"),
        pytest.param({"c1-role": ["tool", "user"]}, "Select a role: System", id="role"),
    ],
)
def test_refuses_bad_input_at_its_field_and_keeps_the_rest(client, ann, changes, says):
    given = typed(make_provider(ann)) | {"input": "Keep me"} | changes
    if "in-city" not in changes:
        given["c1-text"] = changes.get("c1-text", ["Be brief.", "{input}"])

    answer = client.post("/playground/", given)

    page = answer.content.decode()
    assert answer.status_code == 200
    assert says in page
    assert not Run.objects.exists()


def test_columns_and_messages_are_added_and_taken_away(client, ann):
    given = typed(make_provider(ann)) | {"c1-temperature": "0.7", "c1-more": "{seed"}

    two = client.post("/playground/", given | {"do": "add"}).content.decode()
    longer = client.post("/playground/", given | {"do": "message-1"}).content.decode()
    both = given | second(make_provider(ann)) | {"do": "drop-1"}
    rest = client.post("/playground/", both).content.decode()

    assert two.count('value="0.7"') == two.count("{seed") == 2
    assert 'name="c2-text"' in two
    assert longer.count('name="c1-text"') == 3
    assert "In {lang}" in rest
    assert "in {city}" not in rest
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    "do",
    ["drop-1", "drop-9", "message-9", "x", "drop-²", "add-", f"drop-{'9' * 5000}"],
    ids=lambda do: do[:9],
)
def test_nonsense_to_do_is_no_error(client, ann, do):
    given = typed(make_provider(ann)) | {"do": do}

    assert client.post("/playground/", given).status_code == 200


def test_gives_the_fields_of_the_variables_as_one_types(client, ann):
    part = client.post(
        "/playground/variables/",
        typed(make_provider(ann)),
        headers={"HX-Request": "true"},
    ).content.decode()

    assert part.strip().startswith('<section class="card" id="playground-variables"')
    assert "北京" in part


def test_the_question_comes_before_the_other_variables(client, ann):
    provider = make_provider(ann)
    texts = ["Only {city} and {lang}.", "{input}"]

    page = client.post(
        "/playground/", typed(provider, do="add-1", **{"c1-text": texts})
    )

    names = re.findall(r'name="(input|in-city|in-lang)"', page.content.decode())
    assert names == ["input", "in-city", "in-lang"]


def test_a_variable_that_left_the_messages_is_not_asked_for(client, ann):
    given = typed(make_provider(ann)) | {"c1-text": ["Be brief.", "{input}"]}

    page = client.get("/playground/").content.decode()
    client.post("/playground/", given | {"in-city": ""})

    assert " required" not in page  # else a browser without JavaScript sends nothing
    assert Run.objects.get().inputs == {"input": "What to see"}


def call_of(owner, provider):
    """Return a model call whose prompt can be rebuilt."""
    spec = AgentSpec(
        kind="react",
        prompt=PromptSpec(template='As {{"json": 1}}: {input} {agent_scratchpad}'),
        model=ModelSettings(
            model="model-a", provider=provider.slug, provider_id=provider.pk
        ),
    )
    run = make_run(owner, status="running", spec=get_or_create_spec(spec))
    return make_call(run)


def test_begins_with_a_model_call_of_a_run(client, ann):
    call = call_of(ann, make_provider(ann))

    there = client.get(f"/runs/{call.run_id}/steps/1/playground/")
    page = client.get(there.headers["Location"]).content.decode()

    assert "{{&quot;json&quot;: 1}}" in page
    assert "What is 2 + 2?" in page
    assert "\\nObservation" in page
    assert f"From step 1 of run {call.run_id}." in page


def test_what_was_sent_is_sent_again_as_it_was(client, ann):
    provider = make_provider(ann)
    call = call_of(ann, provider)
    page = client.get(f"/playground/?from_call={call.pk}")
    (column,) = page.context["form"].columns
    given = {
        "c1-model": f"{provider.pk}:model-a",
        "c1-role": [one.role for one in column.messages],
        "c1-text": [one.text for one in column.messages],
    }

    client.post("/playground/", given)

    run = Run.objects.get(is_test=True)
    assert '{{"json": 1}}' in run.spec.body["prompt"]["messages"][0]["template"]
    assert run.inputs == {}


def test_begins_with_a_prompt_of_the_library(client, ann):
    make_provider(ann)
    prompt = make_prompt(
        ann,
        messages=[{"role": "user", "template": "{input} for {who}"}],
        partials={"who": "children"},
    )

    page = client.get(f"/playground/?prompt={prompt.pk}").content.decode()

    assert "{input} for {who}" in page
    assert "children" in page


def test_hides_what_is_someone_elses(client, ann):
    make_provider(ann)
    call = call_of(make_user(), make_provider())
    prompt = make_prompt()
    theirs = make_run(inputs={"input": "TOP SECRET"})

    codes = {
        client.get(f"/playground/?from_call={call.pk}").status_code,
        client.get(f"/playground/?prompt={prompt.pk}").status_code,
        client.get(f"/runs/{call.run_id}/steps/1/playground/").status_code,
        client.get("/playground/?from_call=²").status_code,
    }
    page = client.get(f"/playground/?runs={theirs.pk}").content.decode()

    assert codes == {404}
    assert "TOP SECRET" not in page


def test_the_bare_agents_page_leads_to_the_playground(client, ann):
    client.post("/playground/", typed(make_provider(ann)))
    pk = Run.objects.get().agent_id

    assert client.get(f"/agents/{pk}/").headers["Location"] == "/playground/"
    assert client.get(f"/agents/{pk}/edit/").headers["Location"] == "/playground/"
    assert "Playground</a></h2>" not in client.get("/agents/").content.decode()
