"""Secrets that servers send back, in replies and results, are stored nowhere."""

import json
import logging
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote, quote_plus

import pytest
from django.apps import apps
from django.core import serializers

from runs.models import Run
from tests.api.make_client import Api
from tests.fakes.model_server import FakeServer, Recorded, model_server
from tests.make import make_agent, make_provider, make_tool, make_user
from tests.tools.http_server import Answer, Got, serve
from tests.worker.run_parts import call, executed
from tools.models import Credential
from tools.secrets import seal

pytestmark = pytest.mark.django_db(transaction=True)

KEY = "prov-canary/1+2=3"
TEAM = "team-canary/four five"
SECRET = 'tool-canary/6+7&8="9"'


@pytest.fixture
def owner(settings):
    settings.PRIVATE_HOSTS = "tool=127.0.0.1;provider=127.0.0.1"
    return make_user(is_superuser=True)


def encode(headers: dict[str, str]) -> list[str]:
    """Return the values of headers as servers may write them into logs and errors."""
    values = [one.removeprefix("Bearer ") for one in headers.values()]
    return [
        *(quote(one, safe="") + " " + quote_plus(one) for one in values),
        *(b64encode(one.encode()).decode() for one in values),
        *(urlsafe_b64encode(one.encode()).decode() for one in values),
    ]


def repeat_request(got: Got) -> Answer:
    """Answer with the request, as it is and encoded."""
    said = {**got.headers, "target": got.target, "encoded": encode(got.headers)}
    return Answer(said, 403 if got.path == "/refused" else 200)


def repeat_headers(asked: Recorded):
    """Call each tool once; say the headers of the request in each reply."""
    text = f"You sent {asked.headers}, {encode(asked.headers)}."
    reply = {"content": text, "reasoning": f"They sent {asked.headers}."}
    is_first = all(message["role"] != "tool" for message in asked.body["messages"])
    tool_calls = call("whole")["tool_calls"] + call("refused")["tool_calls"]
    return {**reply, "tool_calls": tool_calls} if is_first else reply


@contextmanager
def echoing_servers() -> Iterator[tuple[FakeServer, str]]:
    with model_server(script=repeat_headers) as model, serve(repeat_request) as echo:
        yield model, echo.url


def make_echo_tool(owner, name: str, url: str, credential: Credential):
    config = {"url": f"{url}/{name}", "method": "GET"}
    more = {"kind": "http", "config": config, "approval": "never", "effect": "read"}
    schema = {"type": "object", "properties": {}}
    return make_tool(
        owner, name=name, credential=credential, args_schema=schema, **more
    )


def run_on_echoes(owner, *, stream: bool, **credential) -> Run:
    """Return a run whose model server and tools repeat what they are sent."""
    with echoing_servers() as (model, url):
        provider = make_provider(owner, base_url=model.base_url, stream=stream)
        provider.set_key(KEY)
        provider.set_headers(f"X-Team: {TEAM}")
        provider.save()
        shop = Credential.objects.create(
            name="Shop", owner=owner, hosts=[url], sealed=seal(SECRET), **credential
        )
        tools = [
            make_echo_tool(owner, name, url, shop) for name in ("whole", "refused")
        ]
        return executed(make_agent(owner, tools=tools, provider=provider))


def dump_database() -> str:
    return "\n".join(
        serializers.serialize("json", model.objects.all(), ensure_ascii=False)
        for model in apps.get_models()
    )


def list_forms(secret: str) -> set[str]:
    """Return the spellings in which a server may send a secret back."""
    in_json = json.dumps(secret)[1:-1]
    raw = secret.encode()
    return {
        *(secret, in_json, json.dumps(in_json)[1:-1]),
        *(quote(secret, safe=""), quote_plus(secret)),
        *(b64encode(raw).decode(), urlsafe_b64encode(raw).decode()),
    }


@pytest.mark.parametrize(
    ("credential", "stream"),
    [
        pytest.param({"kind": "bearer"}, True, id="bearer"),
        pytest.param({"kind": "header", "field": "X-Api-Key"}, False, id="header"),
        pytest.param({"kind": "header", "field": "Cookie"}, True, id="cookie"),
        pytest.param({"kind": "basic", "field": "bob"}, False, id="basic"),
        pytest.param({"kind": "query", "field": "key"}, True, id="query"),
    ],
)
def test_nothing_that_leaves_a_run_has_a_secret(
    client, owner, caplog, credential, stream
):
    caplog.set_level(logging.DEBUG)
    run = run_on_echoes(owner, stream=stream, **credential)
    client.force_login(owner)
    address = f"/runs/{run.pk}/"
    pages = [address, f"{address}export/json/", f"{address}export/html/"]
    pages += [f"{address}?step={n}&tab=request" for n in range(1, 5)]
    places = {page: client.get(page).content.decode() for page in pages}
    places["API"] = Api(owner).get(f"runs/{run.pk}").text
    places |= {"database": dump_database(), "logs": caplog.text}

    assert run.status == "succeeded", run.error_message
    assert "[secret removed]" in run.output
    assert all("[secret]" in step.observation for step in run.steps.all())
    for secret in (KEY, TEAM, SECRET):
        for form in list_forms(secret):
            assert [name for name, text in places.items() if form in text] == []
