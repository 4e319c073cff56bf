"""Makers for tests of the model adapters: endpoints, requests, tools."""

from typing import Any

from runs.engine.types import Message, ModelRequest, ModelSettings
from runs.llm.base import LLM, Endpoint
from runs.llm.registry import open_llm
from tools.net.deadline import Deadline
from tools.net.netguard import NetPolicy, parse_private_hosts
from tools.spec import ToolSpec

ADD = ToolSpec(
    name="add",
    description="Add two numbers.",
    effect="read",
    args_schema={
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
)
WEATHER = ToolSpec(
    name="weather_sample",
    description="Sample weather of a city.",
    effect="read",
    args_schema={
        "type": "object",
        "properties": {"city": {"type": "string"}, "day": {"type": "string"}},
        "required": ["city"],
    },
)


def loopback() -> NetPolicy:
    """Return a policy under which the fake servers can be reached."""
    hosts = parse_private_hosts("provider=127.0.0.1,::1")["provider"]
    return NetPolicy(use="provider", private_hosts=hosts)


def make_llm(base_url: str, kind: str = "openai", **more: Any) -> LLM:
    """Return a connection to a server on loopback."""
    fields: dict[str, Any] = {"key": "sk-secret-key", "slug": "local", "timeout": 5.0}
    endpoint = Endpoint(kind=kind, base_url=base_url, **{**fields, **more})
    return open_llm(endpoint, loopback())


def make_request(
    *messages: Message | str,
    model: str = "fake-large",
    stream: bool = True,
    **more: Any,
) -> ModelRequest:
    """Return a request; plain texts are the user's."""
    said = tuple(
        Message.from_text("user", one) if isinstance(one, str) else one
        for one in messages or ("Hello",)
    )
    parameters = more.pop("parameters", {})
    settings = ModelSettings(model=model, stream=stream, parameters=parameters)
    return ModelRequest(messages=said, settings=settings, **more)


def soon(seconds: float = 10.0) -> Deadline:
    """Return a watch for a call that should take no time."""
    return Deadline(seconds=seconds)
