"""Agents in `llm`, a chat program that people use in their terminal."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from runs.models import Agent, Conversation, Decision, Run
from runs.services.accounts.tokens import create_token
from runs.services.approvals.answer import approve_step
from tests.openai.site import working
from tests.support.fork_server import ForkServer, fork_server
from tests.support.servers import find_server_program
from tests.support.timing import wait_until

PROGRAM = find_server_program("llm")
MODULES = (
    *("llm.cli", "llm.default_plugins.openai_models", "openai.resources.chat"),
    *("httpcore", "h2.connection", "certifi", "encodings.idna"),
)
MODELS = """
- model_id: helper
  model_name: helper
  api_base: "{url}/v1"
  api_key_name: agentsite
"""
"""The file that makes an agent a model of the program."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not PROGRAM.exists(), reason="installed by `make test-all`"),
]


class Terminal:
    """The program of one person, with the agent as a model and a token as its key."""

    def __init__(self, folder: Path, command: list[str]) -> None:
        self._command = command
        self._environment = {
            "PATH": os.environ["PATH"],
            "LLM_USER_PATH": str(folder),
            "PYTHONIOENCODING": "utf-8",
        }

    def call(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run a command to its end."""
        return subprocess.run(
            [*self._command, *words],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )

    @contextmanager
    def open(self, *words: str) -> Iterator["OpenProgram"]:
        """Start a command that a person reads; `chat` is typed to."""
        process = subprocess.Popen(
            [*self._command, *words],
            env=self._environment,
            stdin=subprocess.PIPE if "chat" in words else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            preexec_fn=accept_ctrl_c,
        )
        try:
            yield OpenProgram(process)
        finally:
            process.kill()
            process.communicate()


def accept_ctrl_c() -> None:
    """Undo what a shell does to programs in its background: they ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class OpenProgram:
    """A program that is running."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process, self._unread = process, b""

    def type(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()

    def read_until(self, text: str) -> str:
        """Return what it prints up to the text."""
        assert self._process.stdout is not None
        while text.encode() not in self._unread:
            piece = os.read(self._process.stdout.fileno(), 65_536)
            assert piece, f"It ended with: {self._unread.decode()}"
            self._unread += piece
        read, _, self._unread = self._unread.partition(text.encode())
        return read.decode() + text

    def interrupt(self) -> None:
        """Press Ctrl-C, and wait for the end."""
        self._process.send_signal(signal.SIGINT)
        self._process.wait(30)


@pytest.fixture(scope="module")
def forks() -> Iterator[ForkServer]:
    """Give what has the modules of the program imported."""
    python = str(find_server_program("python"))
    with fork_server(*MODULES, python=python) as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where the program keeps its settings and its log, a database."""
    return tmp_path_factory.mktemp("llm")


@pytest.fixture
def terminal(
    url: str, ann: Any, agent: Agent, folder: Path, forks: ForkServer
) -> Iterator[Terminal]:
    """Set the program up as its users do."""
    (folder / "extra-openai-models.yaml").write_text(MODELS.format(url=url))
    (folder / "keys.json").write_text(json.dumps({"agentsite": create_token(ann)}))
    with working():
        yield Terminal(folder, forks.command("llm"))


def test_an_agent_is_listed_and_answers(terminal, url):
    listed = terminal.call(
        "openai", "endpoint", f"{url}/v1", "--models", "--key", "agentsite"
    )
    whole = terminal.call("-m", "helper", "--no-stream", "Hello")
    streamed = terminal.call("-m", "helper", "Hello")

    assert listed.stdout.split() == ["helper"]
    assert whole.stdout == streamed.stdout == "You said: Hello\n"


def test_text_appears_while_the_model_writes(terminal):
    with terminal.open("-m", "helper", "slow") as program:
        program.read_until("One moment, ")

        assert Run.objects.get().status == "running"


@pytest.mark.parametrize("memory", [True, False])
def test_a_second_message_continues_the_chat(terminal, model, memory):
    Agent.objects.update(memory=memory)
    with terminal.open("chat", "-m", "helper") as program:
        program.read_until("> ")
        program.type("My name is Ann")
        program.read_until("You said: My name is Ann")
        program.read_until("> ")
        program.type("And mine?")
        program.read_until("You said: And mine?")

    seen = [m["content"] for m in model.requests[-1].body["messages"]]
    assert seen[-3:] == ["My name is Ann", "You said: My name is Ann", "And mine?"]
    assert Conversation.objects.count() == memory


def test_a_call_that_requires_approval_waits_and_the_chat_goes_on(terminal, url, ann):
    Agent.objects.update(memory=True)
    with terminal.open("chat", "-m", "helper") as program:
        program.read_until("> ")
        program.type("Send the mail")
        program.read_until("Waiting for approval of send_mail: http")
        wait_until(lambda: Run.objects.get().status == "awaiting_approval")
        approve_step(Decision.objects.get(), by=ann)
        program.read_until("Result: sent to ann@example.com.")
        program.read_until("> ")
        program.type("Thanks")
        program.read_until("You said: Thanks")

    assert Conversation.objects.get().runs.count() == 2


def test_a_failing_agent_shows_why_and_where(terminal):
    done = terminal.call("-m", "helper", "fail")

    run = Run.objects.get()
    assert done.returncode == 1
    assert run.error_message in done.stderr
    assert f"/runs/{run.pk}/" in done.stderr
    assert done.stdout.strip() == ""


def test_ctrl_c_cancels_the_run(terminal, ann):
    with terminal.open("-m", "helper", "slow") as program:
        program.read_until("One moment, ")
        program.interrupt()

    wait_until(lambda: Run.objects.get().status == "canceled")
    assert Run.objects.get().canceled_by == ann


def test_ctrl_c_leaves_the_run_of_an_agent_that_continues(terminal, agent, ann):
    """The second run ends with its client, which is later than the first left."""
    agent.continues_without_client = True
    agent.save()
    with terminal.open("-m", "helper", "Send the mail") as program:
        program.read_until("Waiting for approval")
        program.interrupt()
    kept = Run.objects.get()
    Agent.objects.update(continues_without_client=False)
    with terminal.open("-m", "helper", "slow") as program:
        program.read_until("One moment, ")
        program.interrupt()
    wait_until(lambda: Run.objects.exclude(pk=kept.pk).get().status == "canceled")

    approve_step(Decision.objects.get(), by=ann)

    wait_until(lambda: Run.objects.get(pk=kept.pk).status == "succeeded")
