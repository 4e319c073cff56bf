"""Servers on this machine that name their models."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from runs.llm.registry import PROVIDER_KINDS
from runs.services.providers.discover import (
    DEFAULT_CANDIDATES,
    ServerCandidate,
    discover_local_servers,
)
from tests.fakes.model_server import model_server


class Models(BaseHTTPRequestHandler):
    """Answers as Ollama and others do under /v1/models."""

    def do_GET(self) -> None:
        """Name two models; a page for every other path."""
        named = {"object": "list", "data": [{"id": "qwen3:32b"}, {"id": "gemma3"}]}
        body = json.dumps(named).encode() if self.path == "/v1/models" else b"<html>"
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        """Stay quiet."""


@pytest.fixture
def port() -> Iterator[int]:
    """The port of a server with two models."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Models)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


def test_finds_what_answers_and_leaves_out_what_does_not(port):
    here = f"http://127.0.0.1:{port}/v1"

    found = discover_local_servers(
        [
            ServerCandidate("Here", "openai", here),
            ServerCandidate("Gone", "openai", "http://127.0.0.1:9/"),
        ]
    )

    assert [(s.name, s.base_url, s.models) for s in found] == [
        ("Here", here, ("gemma3", "qwen3:32b"))
    ]


def test_leaves_out_a_server_of_another_kind(port):
    assert (
        discover_local_servers(
            [ServerCandidate("Web", "openai", f"http://127.0.0.1:{port}/web")]
        )
        == []
    )


def test_without_places_there_is_nothing():
    assert discover_local_servers([]) == []


def test_asks_ollama_in_its_own_language():
    with model_server() as server:
        server.models = ("llama3",)
        found = discover_local_servers(
            [ServerCandidate("Ollama", "ollama", f"{server.root}/api")]
        )

    assert [(one.name, one.kind, one.models) for one in found] == [
        ("Ollama", "ollama", ("llama3",))
    ]


def test_looks_for_ollama_where_its_own_interface_is():
    ollama = next(place for place in DEFAULT_CANDIDATES if place.name == "Ollama")

    assert (ollama.kind, ollama.base_url) == (
        "ollama",
        PROVIDER_KINDS["ollama"].base_url,
    )
