"""What a model can do and costs: the form, and what follows from it."""

from decimal import Decimal

import pytest

from runs.services.spec.freeze import freeze_agent
from tests.fakes.model_server import model_server
from tests.make import make_agent, make_provider, make_user
from tests.worker.run_parts import agent_on, executed

GIVEN = {
    "name": "model-a",
    "functions": "unknown",
    "stop_words": "unknown",
    "streaming": "unknown",
    "context_tokens": "",
    "input_price": "2.5",
    "cached_price": "",
    "output_price": "10",
}


def model_of(owner, **fields):
    """Make a model of a provider of `owner`, and return it with its address."""
    provider = make_provider(owner)
    model = provider.models.create(name="model-a", **fields)
    return model, f"/providers/{provider.pk}/models/{model.pk}/"


def test_the_provider_lists_what_its_models_can_do_and_cost(client, ann):
    model, address = model_of(
        ann, functions=False, context_tokens=4096, input_price=2, output_price=8
    )
    text = client.get(f"/providers/{model.provider_id}/").content.decode()

    assert f'href="{address}"' in text
    assert "no functions" in text
    assert "$2 in, $8 out" in text


def test_prices_are_saved_and_frozen_into_new_runs(client, ann):
    model, address = model_of(ann)
    agent = make_agent(ann, provider=model.provider)

    answer = client.post(address, GIVEN)

    prices = freeze_agent(agent).prices
    assert answer.headers["Location"] == f"/providers/{model.provider_id}/"
    assert prices is not None
    assert (prices.input, prices.cached_input, prices.output) == (2.5, None, 10.0)


@pytest.mark.parametrize(("kind", "offered"), [("openai", True), ("ollama", False)])
def test_audio_is_offered_where_the_format_carries_it(client, ann, kind, offered):
    model, address = model_of(ann)
    model.provider.kind = kind
    model.provider.save()

    page = client.get(address).content.decode()
    client.post(address, {**GIVEN, "audio": "true"})

    model.refresh_from_db()
    assert ('name="audio"' in page, model.audio is True) == (offered, offered)
    assert freeze_agent(make_agent(ann, provider=model.provider)).model.audio is offered


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("prices", "message"),
    [
        ({}, True),
        ({"input_price": "", "output_price": ""}, False),
    ],
)
def test_the_message_mentions_prices_only_if_there_are_any(
    client, ann, prices, message
):
    _, address = model_of(ann)

    text = client.post(address, GIVEN | prices, follow=True).content.decode()

    assert "model-a saved." in text
    assert ("New runs use its prices." in text) is message


@pytest.mark.django_db(transaction=True)
def test_a_run_counts_what_its_calls_cost():
    with model_server(script=["Done."]) as server:
        agent = agent_on(server)
        agent.provider.models.create(
            name=agent.model, input_price=1_000, output_price=2_000
        )
        run = executed(agent)

    wanted = (run.input_tokens * 1_000 + run.output_tokens * 2_000) / Decimal(10**6)
    assert run.cost == wanted > 0


def test_what_a_person_sets_is_remembered_as_set(client, ann):
    model, address = model_of(ann, functions=True)

    client.post(address, GIVEN | {"functions": "false", "context_tokens": "100"})
    model.refresh_from_db()
    assert (model.functions, model.context_tokens) == (False, 100)
    assert sorted(model.edited) == ["context_tokens", "functions"]

    client.post(address, GIVEN | {"functions": "unknown", "context_tokens": "100"})
    model.refresh_from_db()
    assert (model.functions, model.edited) == (None, ["context_tokens"])


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        pytest.param(
            {"input_price": "-1"}, "Enter a price of 0 or more.", id="negative"
        ),
        pytest.param({"input_price": "much"}, "Enter a number.", id="no-number"),
        pytest.param({"input_price": ""}, "Enter the input price too", id="half"),
        pytest.param({"context_tokens": "0"}, "greater than 0", id="no-context"),
    ],
)
def test_invalid_input_is_explained_at_its_field(client, ann, changes, says):
    model, address = model_of(ann)

    text = client.post(address, GIVEN | changes).content.decode()

    assert says in text
    assert f'id="id_{next(iter(changes))}-error"' in text
    model.refresh_from_db()
    assert model.output_price is None


def test_a_new_model_is_not_called_unlisted(client, ann):
    model, address = model_of(ann)
    new = f"/providers/{model.provider_id}/models/new/"
    says = "Not listed by the server"

    assert says in client.get(address).content.decode()
    assert says not in client.get(new).content.decode()


def test_a_model_the_server_does_not_list_can_be_added_once(client, ann):
    provider = make_provider(ann)
    address = f"/providers/{provider.pk}/models/new/"
    assert 'name="name"' in client.get(address).content.decode()

    client.post(address, GIVEN)
    again = client.post(address, GIVEN).content.decode()

    assert provider.models.get().output_price == 10
    assert "already has a model with this name." in again


def test_only_who_may_edit_the_provider_gets_there(client, ann):
    model, address = model_of(make_user("bob"))
    model.provider.visibility = "everyone"
    model.provider.save()

    assert client.get(address).status_code == 404
    assert client.post(address, GIVEN).status_code == 404
    new = f"/providers/{model.provider_id}/models/new/"
    assert client.post(new, GIVEN).status_code == 404


def test_the_agent_page_says_at_the_kind_that_the_model_calls_no_functions(client, ann):
    model, _ = model_of(ann, functions=False)
    given = {
        "name": "A",
        "kind": "tool-calling",
        "source": "write",
        "provider": model.provider_id,
        "model": "model-a",
        "early_stopping_method": "force",
        "parsing": "tell",
        "visibility": "private",
    }

    text = client.post("/agents/new/", given).content.decode()
    assert "does not support function calling" in text

    answer = client.post("/agents/new/", given | {"kind": "react"})
    assert answer.status_code == 302
