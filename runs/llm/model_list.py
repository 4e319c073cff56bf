"""The list of models at GET /models, and what servers tell of each."""

from typing import Any

from runs.llm.base import ModelCard
from runs.llm.chat import count
from runs.llm.server import ModelServer
from runs.llm.wire import BadJson, read_object, what_it_is
from tools.watch import Watch


def listed_models(
    server: ModelServer, *, watch: Watch, path: str = "/models"
) -> list[ModelCard]:
    """Return the models the server names, by name; raise like `LLM.ask`."""
    with server.exchange(path, watch=watch) as answer:
        raw = answer.read()
    try:
        found = read_object(raw)
    except BadJson as error:
        raise server.bad_list(what_it_is(raw)) from error
    try:
        return sorted(cards_in(found), key=lambda card: card.name)
    except BadJson as error:
        raise server.bad_list("something else") from error


def cards_in(answer: dict[str, Any]) -> list[ModelCard]:
    """Return the models in an answer to GET /models; raise `BadJson` if none."""
    models = answer.get("data")
    if not isinstance(models, list):
        models = answer.get("models")
    if not isinstance(models, list):
        raise BadJson("no list of models")
    cards = {}
    for one in models:
        name = one.get("id") if isinstance(one, dict) else None
        if isinstance(name, str) and name:
            cards[name] = _card(name, one)
    return list(cards.values())


def _card(name: str, told: dict[str, Any]) -> ModelCard:
    """Return what OpenRouter, vLLM, llama.cpp and Mistral tell of a model."""
    takes = told.get("supported_parameters")
    takes = takes if isinstance(takes, list) else None
    can = told.get("capabilities")
    can = can if isinstance(can, dict) else {}
    meta = told.get("meta")
    meta = meta if isinstance(meta, dict) else {}
    lengths = (
        told.get("context_length"),
        told.get("max_model_len"),
        told.get("max_context_length"),
        meta.get("n_ctx"),
    )
    functions = can.get("function_calling")
    return ModelCard(
        name=name,
        functions="tools" in takes
        if takes is not None
        else functions
        if isinstance(functions, bool)
        else None,
        stop_words="stop" in takes if takes is not None else None,
        context_tokens=next(filter(None, map(count, lengths)), None),
    )
