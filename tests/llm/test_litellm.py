"""Agents behind a real LiteLLM proxy, which `make test-all` installs apart."""

import json
import os
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest

from runs.engine.types import AudioPart, ImagePart, Message, TextPart
from tests.fakes.model_server import FakeServer, model_server
from tests.llm.make import make_llm, make_request, soon
from tests.make import make_provider, make_user
from tests.support.servers import find_server_program, free_port, is_answering
from tests.worker.run_parts import agent_on, call, calls, executed

LITELLM = find_server_program("litellm")
KEY = "sk-litellm-0123456789abcdef0123456789abcdef"
BACKENDS = ("openai", "anthropic")
"""The formats that the proxy speaks to the model server."""
KINDS = ("openai", "responses", "anthropic")
"""The formats that it offers to us."""
WAYS = [(kind, stream) for kind in KINDS for stream in (True, False)]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not LITELLM.exists(), reason="installed by `make test-all`"),
]


@pytest.fixture(scope="module")
def behind() -> Iterator[FakeServer]:
    """Run the model server behind the proxy."""
    with model_server(script=[]) as server:
        yield server


@pytest.fixture(scope="module")
def proxy(
    behind: FakeServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Run the proxy; yield its address."""
    folder = tmp_path_factory.mktemp("litellm")
    (folder / "config.yaml").write_text(json.dumps(configure(behind)))  # JSON is YAML
    port = free_port()
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [str(LITELLM), "--config", "config.yaml", "--port", str(port)]
            + ["--host", "127.0.0.1", "--telemetry", "False"],
            cwd=folder,
            env={
                "PATH": os.environ["PATH"],
                "LITELLM_MASTER_KEY": KEY,
                "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # nothing is downloaded
            },
            stdout=log,
            stderr=log,
        )
    address = f"http://127.0.0.1:{port}"
    try:
        until = time.monotonic() + 120
        while not is_answering(f"{address}/health/liveliness"):
            assert process.poll() is None, (folder / "log").read_text()[-3000:]
            assert time.monotonic() < until, "The proxy does not start."
            time.sleep(0.2)
        warm_up(address, behind)
        yield address
    finally:
        process.terminate()
        process.wait(30)


def warm_up(address: str, behind: FakeServer) -> None:
    """Ask once in each format: the proxy imports much at the first request."""
    for kind in KINDS:
        llm = make_llm(f"{address}/v1", kind=kind, key=KEY, timeout=60.0)
        for backend in BACKENDS:
            behind.script = ["Ready."]
            request = make_request(model=backend)
            llm.complete(request, deadline=soon(60), on_text=lambda _: None)
        llm.close()


def configure(behind: FakeServer) -> dict[str, Any]:
    """Return a configuration that passes on whatever happens."""
    bases = {"openai": behind.base_url, "anthropic": behind.root}
    models = [
        {
            "model_name": name,
            "litellm_params": {
                "model": f"{name}/{name}-model",
                "api_base": bases[name],
                "api_key": "sk-behind",
            },
        }
        for name in BACKENDS
    ]
    return {
        "model_list": models,
        "router_settings": {"num_retries": 0, "disable_cooldowns": True},
    }


@pytest.fixture
def says(proxy: str, behind: FakeServer, monkeypatch: pytest.MonkeyPatch):
    """Give a function that sets what the model says, and returns an agent."""
    monkeypatch.setattr("runs.llm.retry.BASE_DELAY", 0.02)
    behind.requests.clear()

    def prepare(*script, backend="openai", key=KEY, agent_kind="tool-calling", **more):
        behind.script = list(script)
        owner = make_user()
        provider = make_provider(owner, base_url=f"{proxy}/v1", **more)
        provider.set_key(key)
        provider.save()
        return agent_on(
            None, "add", owner=owner, provider=provider, model=backend, kind=agent_kind
        )

    return prepare


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("kind", "stream"), WAYS)
def test_an_agent_calls_functions(says, behind, kind, backend, stream):
    both = calls(call("add", id="c1", a=1, b=2), call("add", id="c2", a=30, b=4))
    agent = says(both, "3 and 34.", kind=kind, backend=backend, stream=stream)

    run = executed(agent, "Wieviel? 多少?")

    assert (run.status, run.output) == ("succeeded", "3 and 34."), run.error_message
    steps = run.steps.order_by("index")
    assert [(s.tool_input, s.observation) for s in steps] == [
        ({"a": 1, "b": 2}, "3"),
        ({"a": 30, "b": 4}, "34"),
    ]
    assert run.calls.first().reply["usage"]["output_tokens"] > 0


REACT = """\
Thought: I add them.
Action: add
Action Input: {"a": 1, "b": 2}
Observation: 99
Final Answer: 99"""


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_react_agent_gets_its_stop_words_through(says, behind, backend):
    final = "Thought: I know.\nFinal Answer: 3"
    agent = says(REACT, final, backend=backend, agent_kind="react")

    run = executed(agent)

    assert (run.status, run.output) == ("succeeded", "3"), run.error_message
    assert run.steps.get().observation == "3"
    sent = behind.requests[0].body
    stops = sent.get("stop") or sent.get("stop_sequences")
    assert "\nObservation:" in [f"\n{one.strip()}" for one in stops]
    assert "99" not in behind.requests[1].raw.decode()


@pytest.mark.parametrize("kind", KINDS)
def test_text_arrives_in_pieces(proxy, behind, kind):
    behind.script = ["One two three four."]
    llm = make_llm(f"{proxy}/v1", kind=kind, key=KEY)
    received: list[str] = []

    reply = llm.complete(
        make_request(model="openai"), deadline=soon(60), on_text=received.append
    )
    llm.close()

    assert "".join(received) == reply.text == "One two three four."
    assert len(received) > 1


@pytest.mark.parametrize(("kind", "stream"), WAYS)
@pytest.mark.parametrize(
    ("fault", "code", "words"),
    [
        ("400", "bad_request", "The request is not valid."),
        ("401", "auth", "Incorrect API key provided."),
        ("403", "forbidden", "You do not have access."),
        ("404", "not_found", "does not exist."),
        ("too-long", "context_too_long", "maximum context length"),
    ],
)
def test_a_refusal_is_passed_on_with_its_words(says, kind, stream, fault, code, words):
    agent = says({"fault": fault}, kind=kind, stream=stream)

    run = executed(agent)

    assert (run.status, run.error_code) == ("failed", code), run.error_message
    assert words in run.error_message


@pytest.mark.parametrize(("kind", "stream"), WAYS)
@pytest.mark.parametrize(
    ("fault", "code", "words"),
    [
        ("429", "rate_limit", "Rate limit reached."),
        ("500", "overloaded", "The server had an error."),
        ("reset", "overloaded", "InternalServerError"),
    ],
)
def test_a_passing_failure_is_retried(says, kind, stream, fault, code, words):
    agent = says({"fault": fault}, "Done.", kind=kind, stream=stream)

    run = executed(agent)

    assert (run.status, run.output) == ("succeeded", "Done."), run.error_message
    attempt = run.attempts.get()
    assert (attempt.code, attempt.retry_in is None) == (code, False)
    assert words in attempt.message


def test_images_and_sounds_go_through(proxy, behind):
    behind.requests.clear()
    behind.script = ["I see and hear."]
    llm = make_llm(f"{proxy}/v1", key=KEY)
    parts = (
        TextPart(text="Look and listen:"),
        ImagePart(media_type="image/png", data="iVBORw0KGgo="),
        AudioPart(format="wav", data="UklGRjAwMDBXQVZF", number=2),
    )
    request = make_request(Message(role="user", content=parts), model="openai")

    assert llm.complete(request, deadline=soon(60)).text == "I see and hear."
    llm.close()
    (sent,) = behind.requests
    _, image, sound = sent.body["messages"][0]["content"]
    assert image["image_url"]["url"] == "data:image/png;base64,iVBORw0KGgo="
    assert sound["input_audio"] == {"data": "UklGRjAwMDBXQVZF", "format": "wav"}


def test_the_key_of_the_proxy_is_checked(says, behind):
    run = executed(says("Never said.", key="sk-wrong"))

    assert (run.status, run.error_code) == ("failed", "auth"), run.error_message
    assert "Check the key of provider" in run.error_message
    assert behind.requests == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_models_of_the_proxy_are_listed(proxy, kind):
    llm = make_llm(f"{proxy}/v1", kind=kind, key=KEY)

    assert [one.name for one in llm.list_models(deadline=soon(60))] == sorted(BACKENDS)
    llm.close()
