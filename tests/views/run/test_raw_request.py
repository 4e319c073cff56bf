"""The raw request of a step: what the provider's server really got."""

import json

import pytest

from runs.engine.types import ModelSettings
from tests.fakes.model_server import model_server
from tests.make import make_call, make_provider, make_run, make_spec, make_user
from tests.worker.run_parts import agent_on, call, executed

pytestmark = pytest.mark.django_db(transaction=True)

KINDS = ["openai", "gemini", "responses", "anthropic", "ollama"]
SCRIPT = [{**call("add", a=1, b=2), "reasoning": "So."}, "It is 3."]


def raw(client, run, step):
    """Return the pane of a raw request."""
    response = client.get(f"/runs/{run.pk}/?step={step}&tab=request")
    return response.context["raw"]


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("kind", KINDS)
def test_shows_what_the_server_got(client, ann, kind, stream):
    with model_server(script=SCRIPT) as server:
        provider = make_provider(ann, kind=kind, base_url=server.root, stream=stream)
        provider.set_key("sk-very-secret")
        provider.set_headers("X-Team: tools-and-secrets")
        provider.save()
        run = executed(agent_on(server, "add", owner=ann, provider=provider))
    assert run.status == "succeeded"

    got = server.requests[1]
    shown = client.get(f"/runs/{run.pk}/steps/3/request/").content.decode()
    assert json.loads(shown) == got.body
    pane = raw(client, run, 3)
    assert pane["text"] == shown
    assert pane["note"].startswith("Rebuilt from the record; its messages match")
    first, *lines = pane["head"].splitlines()
    assert first == f"POST {server.root}{got.path}"
    headers = dict(line.split(": ", 1) for line in lines)
    assert headers["content-type"] == got.headers["content-type"]
    assert headers["x-team"] == "[secret removed]"
    assert "sk-very-secret" not in pane["head"]
    assert set(headers) <= set(got.headers)


def test_hides_the_address_of_a_provider_that_the_owner_may_not_see(client, ann):
    provider = make_provider(make_user("bob"), base_url="http://10.1.2.3:8000/v1")
    provider.set_headers("X-Team: tools")
    provider.save()
    spec = make_spec(model=ModelSettings(model="m", provider_id=provider.pk))
    run = make_run(ann, status="succeeded", spec=spec, inputs={"input": "Go"})
    make_call(run)

    page = client.get(f"/runs/{run.pk}/?step=1&tab=request").content.decode()

    assert "10.1.2.3" not in page
    assert "x-team" not in page.lower()
    assert raw(client, run, 1)["head"] == "POST [hidden]"


def test_a_provider_that_is_gone_leaves_the_common_format(client, ann):
    run = make_run(ann, status="succeeded", spec=make_spec(), inputs={"input": "Go"})
    make_call(run)

    pane = raw(client, run, 1)
    assert pane["head"] == ""
    assert json.loads(pane["text"])["messages"][-1]["content"] == "Go"
    assert "The provider was deleted" in pane["note"]


def test_an_unknown_kind_of_provider_is_no_error(client, ann):
    provider = make_provider(ann, kind="telex")
    spec = make_spec(model=ModelSettings(model="m", provider_id=provider.pk))
    run = make_run(ann, status="succeeded", spec=spec, inputs={"input": "Go"})
    make_call(run)

    pane = raw(client, run, 1)
    assert json.loads(pane["text"])["messages"][-1]["content"] == "Go"
