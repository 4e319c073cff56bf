"""Agents called by the official OpenAI clients, through a real web server."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User
from django.test import Client

from agentsite.threaded import THREADS
from runs.models import Agent, Conversation, Decision, Run
from runs.services.accounts.tokens import create_token
from runs.services.approvals.answer import approve_step
from runs.services.spec.freeze import freeze_agent
from runs.store.specs import get_or_create_spec
from tests.make import make_prompt, make_version
from tests.openai.clients.driver import ClientError, ClientProcess, client_process
from tests.openai.site import working
from tests.support.servers import find_server_program
from tests.support.timing import wait_until
from tests.views.agents.test_code import example_of
from tools.models import AuditEntry
from tools.secrets import seal

PYTHON = find_server_program("python")
PAGE = Path("docs/openai-endpoint.md")
HELLO = [{"role": "user", "content": "Hello"}]
NODE_CLIENT = Path("node_modules/openai")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not PYTHON.exists(), reason="installed by `make test-all`"),
]


@pytest.fixture(scope="module")
def python() -> Iterator[ClientProcess]:
    with client_process(str(PYTHON), "python_clients.py") as process:
        yield process


@pytest.fixture
def client(
    python: ClientProcess, url: str, ann: User, agent: Agent
) -> Iterator[ClientProcess]:
    """Return the Python clients with a token of ann, while a worker works."""
    with working():
        yield python.bind(url=url, token=create_token(ann), model="helper")


def content_of(chunks: list[dict[str, Any]], name: str = "content") -> str:
    """Return the text that a client puts together."""
    deltas = [choice["delta"] for one in chunks for choice in one["choices"]]
    return "".join(delta.get(name) or "" for delta in deltas)


def test_agents_are_models(client):
    assert client.do("models") == ["helper", "helper"]


def test_an_answer_comes_whole_with_its_usage(client):
    done = client.do("chat", text="Hello")

    [choice] = done["choices"]
    assert choice["message"]["content"] == "You said: Hello"
    assert choice["finish_reason"] == "stop"
    assert done["usage"]["total_tokens"] > 0
    assert Run.objects.get().source == "api"


def test_an_answer_is_streamed_and_ends_with_its_usage(client):
    chunks = client.do("chat_stream", text="Hello")

    assert content_of(chunks) == "You said: Hello"
    assert chunks[-2]["choices"][0]["finish_reason"] == "stop"
    assert chunks[-1]["usage"]["total_tokens"] > 0
    assert len({chunk["id"] for chunk in chunks}) == 1


def test_what_the_agent_does_is_reasoning_if_it_is_asked_for(client):
    quiet = client.do("chat_stream", text="the sum")
    told = client.do(
        "chat_stream", text="the sum", extra_body={"include_reasoning": True}
    )

    assert content_of(quiet) == content_of(told) == "Result: 5."
    assert content_of(quiet, "reasoning_content") == ""
    said = content_of(told, "reasoning_content")
    assert said == 'Adding is easy.\nadd({"a": 2, "b": 3})\n→ 5\n'


@pytest.mark.parametrize(
    ("answer", "result"),
    [("approve", "sent to ann@example.com"), ("reject", "rejected")],
)
def test_a_stream_names_the_approval_and_waits_for_it(client, answer, result):
    chunks = client.do("chat_stream", text="Send the mail", answer=answer)

    remark, approval, *rest = content_of(chunks).split("\n\n")
    assert remark == "I write to Ann."
    assert approval.startswith("Waiting for approval of send_mail: http")
    assert rest[0].startswith("Result: ")
    assert result in rest[0]
    assert content_of(chunks, "reasoning_content") == ""


def test_the_approval_is_reasoning_for_a_client_that_asks_for_reasoning(client):
    asked = {"answer": "approve", "extra_body": {"include_reasoning": True}}
    chunks = client.do("chat_stream", text="Send the mail", **asked)

    reasoning = content_of(chunks, "reasoning_content")
    assert "\nWaiting for approval of send_mail: http" in reasoning
    assert "Waiting" not in content_of(chunks)


def test_a_streamed_answer_that_is_sent_back_continues_its_conversation(client):
    """Chat programs send back what they showed: remarks and links, trimmed."""
    Agent.objects.update(memory=True)
    chunks = client.do("chat_stream", text="Send the mail", answer="approve")
    turns = [
        {"role": "user", "content": "Send the mail"},
        {"role": "assistant", "content": f" {content_of(chunks)}\n"},
        {"role": "user", "content": "Thanks"},
    ]
    client.do("chat", messages=turns)

    assert Conversation.objects.get().runs.count() == 2


def test_another_answer_continues_no_conversation(client):
    Agent.objects.update(memory=True)
    client.do("chat", text="Hello")
    turns = [
        *HELLO,
        {"role": "assistant", "content": "Not: You said: Hello"},
        {"role": "user", "content": "Thanks"},
    ]
    client.do("chat", messages=turns)

    assert Conversation.objects.count() == 2


def test_leaving_cancels_the_run(client, ann):
    assert client.do("chat_leave", text="slow") == "cancelled"
    assert Run.objects.get().canceled_by == ann
    entry = AuditEntry.objects.get(action="canceled")
    assert (entry.by, entry.way) == ("ann", "api")


@pytest.mark.parametrize(
    ("setting", "extra"),
    [
        pytest.param({"continues_without_client": True}, {}, id="agent continues"),
        pytest.param({}, {"headers": {"Idempotency-Key": "1"}}, id="key"),
    ],
)
def test_leaving_a_run_that_continues_does_not_cancel_it(client, ann, setting, extra):
    """The second run is canceled later than the first one was left."""
    Agent.objects.update(**setting)
    client.do("chat_leave_early", text="Send the mail", **extra)
    left = Run.objects.get()
    Agent.objects.update(continues_without_client=False)
    assert client.do("chat_leave", text="slow") == "cancelled"

    wait_until(lambda: Run.objects.get(pk=left.pk).status == "awaiting_approval")
    approve_step(Decision.objects.get(), by=ann)
    wait_until(lambda: Run.objects.get(pk=left.pk).status == "succeeded")


def test_leaving_a_response_cancels_its_run_unless_it_is_in_the_background(client):
    """The third run is canceled later than the second one was left."""
    call = {"text": "Send the mail", "leaves": True}
    for background in (False, True, False):
        client.do("response_stream", **call, background=background)
        if not background:
            wait_until(lambda: Run.objects.latest("pk").status == "canceled")

    left = Run.objects.order_by("pk")[1]
    assert left.status == "awaiting_approval"
    assert Run.objects.filter(status="canceled").count() == 2


def test_a_failing_agent_is_a_failed_response(client):
    with pytest.raises(ClientError) as whole:
        client.do("response", text="fail")
    events = client.do("response_stream", text="fail")

    assert whole.value.fields["status_code"] == 500
    assert "/runs/" in whole.value.fields["message"]
    assert events[-1]["type"] == "response.failed"
    assert "/runs/" in events[-1]["response"]["error"]["message"]


def test_a_failing_agent_is_an_error_and_no_second_run(client):
    with pytest.raises(ClientError) as whole:
        client.do("chat", text="fail")
    with pytest.raises(ClientError) as streamed:
        client.do("chat_stream", text="fail")

    assert whole.value.fields["status_code"] == 500
    assert "/runs/" in whole.value.fields["message"]
    assert "/runs/" in streamed.value.fields["message"]
    assert Run.objects.count() == 2


@pytest.mark.parametrize("memory", [True, False])
def test_the_model_sees_the_messages_before_the_last(client, agent, model, memory):
    Agent.objects.update(memory=memory)
    first = client.do("chat", text="My name is Ann")["choices"][0]["message"]
    turns = [{"role": "user", "content": "My name is Ann"}, first]
    client.do("chat", messages=[*turns, {"role": "user", "content": "And mine?"}])

    seen = [m["content"] for m in model.requests[-1].body["messages"]]
    assert seen[-3:] == ["My name is Ann", "You said: My name is Ann", "And mine?"]
    assert Conversation.objects.count() == memory


def test_no_key_of_a_provider_is_sent(client, agent):
    agent.provider.sealed_key = seal("sk-secret-0123456789")
    agent.provider.save()

    chunks = client.do("chat_stream", text="My key is sk-secret-0123456789, ok?")

    assert content_of(chunks).startswith("You said: My key is ")
    assert "0123456789" not in str(chunks)


def test_open_streams_hold_no_thread_and_no_connection(url, ann, agent):
    headers = {"Authorization": f"Bearer {create_token(ann)}"}
    body = {"model": "helper", "messages": HELLO, "stream": True}
    path = f"{url}/v1/chat/completions"
    with httpx.Client(headers=headers, timeout=60) as http, ExitStack() as streams:
        for _ in range(THREADS + 4):
            answer = streams.enter_context(http.stream("POST", path, json=body))
            assert answer.status_code == 200
        assert http.get(f"{url}/v1/models").status_code == 200
        assert Run.objects.filter(status="queued").count() == THREADS + 4

    wait_until(lambda: not Run.objects.exclude(status="canceled").exists())


def test_the_example_of_the_documentation_works(client, url, agent):
    agent.slug = "travel-planner"
    agent.save()
    example = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert example is not None
    code = example[1].replace("http://localhost:8000", url)

    assert client.do("run_example", code=code) == "You said: A day in Lima"


RUN_EXAMPLE = {
    "curl": ("bash", "-c"),
    "javascript": ("node", "--input-type=module", "-e"),
}


@pytest.mark.parametrize("query", ["", "&stream=1&version=1"])
@pytest.mark.parametrize("language", ["curl", "python", "javascript"])
def test_each_example_of_the_agent_works_as_shown(
    client, url, ann, agent, settings, language, query
):
    if language == "javascript" and not NODE_CLIENT.exists():
        pytest.skip("installed by `make check`")
    settings.PUBLIC_URL = url
    words = [{"role": "user", "template": "{input} in {city}"}]
    agent.prompt = make_prompt(ann, messages=words)
    agent.suggested_questions = ['What\'s "up"?']
    agent.save()
    make_version(agent, spec=get_or_create_spec(freeze_agent(agent)))
    browser = Client()
    browser.force_login(ann)
    page = browser.get(f"/agents/{agent.pk}/code/?lang={language}{query}")

    code = example_of(page.content.decode())
    if language == "python":
        printed = client.do("run_example", code=code)
    else:
        printed = subprocess.run(
            [*RUN_EXAMPLE[language], code],
            env={**os.environ, "AGENTSITE_TOKEN": create_token(ann)},
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            timeout=60,
        ).stdout

    answer = 'You said: What\'s "up"? in <city>'
    if language != "curl":
        assert printed.strip() == answer
    elif "stream" in query:
        chunks = [json.loads(one[6:]) for one in printed.split("\n\n")[:-2]]
        assert content_of(chunks) == answer
    else:
        message = json.loads(printed)["choices"][0]["message"]
        assert message["content"] == answer


def test_responses_come_whole_streamed_and_later(client):
    whole = client.do("response", text="Hello")
    events = client.do("response_stream", text="Hello")

    assert whole["output_text"] == "You said: Hello"
    assert whole["status"] == "completed"
    assert events[0]["type"] == "response.created"
    assert events[-1]["response"]["output"][0]["content"][0]["text"] == (
        "You said: Hello"
    )
    assert client.do("response_background", text="Hello") == [
        "queued",
        "completed",
        "You said: Hello",
    ]


def test_a_response_has_the_calls_of_tools_if_it_is_asked_for(client):
    told = client.do("response", text="the sum", reasoning={"summary": "auto"})

    thought, called, said = told["output"]
    assert thought["summary"][0]["text"] == "Adding is easy. "
    assert (called["type"], called["name"], called["output"]) == (
        "mcp_call",
        "add",
        "5",
    )
    assert said["content"][0]["text"] == told["output_text"] == "Result: 5."


def test_a_streamed_response_waits_for_approval(client):
    events = client.do("response_stream", text="Send the mail", answer="approve")

    items = events[-1]["response"]["output"]
    assert [item["type"] for item in items] == [
        "message",
        "mcp_approval_request",
        "message",
    ]
    assert items[2]["content"][0]["text"] == "Result: sent to ann@example.com."


@pytest.mark.parametrize("memory", [True, False])
def test_a_response_continues_the_one_before(client, model, memory):
    Agent.objects.update(memory=memory)
    first = client.do("response", text="My name is Ann")
    client.do("response", text="And mine?", previous_response_id=first["id"])

    seen = [m["content"] for m in model.requests[-1].body["messages"]]
    assert seen[-3:] == ["My name is Ann", "You said: My name is Ann", "And mine?"]
    assert Conversation.objects.count() == memory


@pytest.fixture(params=["litellm", "langchain", "javascript"])
def other(
    request: pytest.FixtureRequest, client: ClientProcess, url: str, ann: User
) -> Iterator[Callable[..., Any]]:
    """Return what calls the agent with another client: `chat` or `stream`."""
    if request.param != "javascript":
        yield lambda name, **call: client.do(f"{request.param}_{name}", **call)
        return
    node = shutil.which("node")
    if node is None or not NODE_CLIENT.exists():
        pytest.skip("installed by `make check`")
    with client_process(node, "javascript_client.mjs") as process:
        bound = process.bind(url=url, token=create_token(ann), model="helper")
        yield lambda name, **call: bound.do(
            {"stream": "chat_stream"}.get(name, name), **call
        )


def test_other_clients_get_an_answer_whole_and_streamed(other):
    assert other("chat", text="Hello") == "You said: Hello"
    assert other("stream", text="Hello") == "You said: Hello"


def test_other_clients_continue_a_conversation(other):
    Agent.objects.update(memory=True)
    turns = [
        *HELLO,
        {"role": "assistant", "content": other("chat", text="Hello")},
        {"role": "user", "content": "And then?"},
    ]

    assert other("chat", messages=turns) == "You said: And then?"
    assert Conversation.objects.get().runs.count() == 2


@pytest.mark.parametrize(
    ("answer", "result"),
    [("approve", "sent to ann@example.com"), ("reject", "rejected")],
)
def test_other_clients_wait_for_approval(other, answer, result):
    text = other("stream", text="Send the mail", answer=answer)

    assert "Waiting for approval of send_mail: http" in text
    assert result in text.rpartition("Result: ")[2]


def test_other_clients_that_leave_cancel_the_run(other, ann):
    assert other("stream", text="slow", leaves=True).startswith("One ")

    wait_until(lambda: Run.objects.get().status == "canceled")
    assert Run.objects.get().canceled_by == ann


@pytest.mark.parametrize("name", ["chat", "stream"])
def test_other_clients_raise_the_error_of_a_failing_agent(other, name):
    with pytest.raises(ClientError) as raised:
        other(name, text="fail")

    run = Run.objects.get()
    assert run.error_message in raised.value.fields["message"]
    assert f"/runs/{run.pk}/" in raised.value.fields["message"]


@pytest.mark.skipif(not NODE_CLIENT.exists(), reason="installed by `make check`")
def test_the_javascript_client_reads_responses_and_errors(url, ann, agent):
    node = shutil.which("node")
    assert node is not None
    with working(), client_process(node, "javascript_client.mjs") as process:
        client = process.bind(url=url, token=create_token(ann), model="helper")

        text, types = client.do("response_stream", text="Hello")
        assert text == "You said: Hello"
        assert "response.output_text.delta" in types
        with pytest.raises(ClientError) as refused:
            client.bind(model="nobody").do("chat", text="Hello")
        assert refused.value.fields["code"] == "model_not_found"
