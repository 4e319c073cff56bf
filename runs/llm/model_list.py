"""The list of models at GET /models."""

from decimal import Decimal
from typing import Any

from runs.llm.base import ModelCard
from runs.llm.chat_completions import parse_token_count
from runs.llm.server import ModelServer
from runs.llm.wire import InvalidJson, describe_non_json, parse_json_object
from tools.net.deadline import Deadline

MILLION = 1_000_000
SMALLEST_PRICE = Decimal("0.0001")
HIGHEST_PRICE = 100_000_000
CONTEXT_FIELDS = (
    "context_length",  # OpenRouter
    "max_model_len",  # vLLM
    "max_context_length",  # Mistral
    "context_window",  # Groq
    "max_input_tokens",  # Anthropic
)


def fetch_model_list(
    server: ModelServer, *, deadline: Deadline, path: str = "/models"
) -> list[ModelCard]:
    """Return the models that the server lists, by name; raise like `LLM.complete`."""
    with server.exchange(path, deadline=deadline) as answer:
        raw = answer.read()
    try:
        found = parse_json_object(raw)
    except InvalidJson as error:
        raise server.build_bad_list_error(describe_non_json(raw)) from error
    try:
        return sorted(parse_model_list(found), key=lambda card: card.name)
    except InvalidJson as error:
        raise server.build_bad_list_error("something else") from error


def parse_model_list(answer: dict[str, Any]) -> list[ModelCard]:
    """Return the models in a response; raise `InvalidJson` without a list."""
    models = answer.get("data")
    if not isinstance(models, list):
        models = answer.get("models")
    if not isinstance(models, list):
        raise InvalidJson("no list of models")
    cards = {}
    for one in models:
        name = one.get("id") if isinstance(one, dict) else None
        if isinstance(name, str) and name:
            cards[name] = _parse_card(name, one)
    return list(cards.values())


def _parse_card(name: str, message: dict[str, Any]) -> ModelCard:
    """Return what a server reports about a model, in the words of several servers."""
    takes = message.get("supported_parameters")
    takes = takes if isinstance(takes, list) else None
    can = message.get("capabilities")
    can = can if isinstance(can, dict) else {}
    meta = message.get("meta")
    meta = meta if isinstance(meta, dict) else {}
    lengths = (*map(message.get, CONTEXT_FIELDS), meta.get("n_ctx"))
    prices = message.get("pricing")
    prices = prices if isinstance(prices, dict) else {}
    functions = can.get("function_calling")
    return ModelCard(
        name=name,
        functions="tools" in takes
        if takes is not None
        else functions
        if isinstance(functions, bool)
        else None,
        images=_parse_modality("image", message, can.get("vision")),
        audio=_parse_modality("audio", message, can.get("audio")),
        stop_words="stop" in takes if takes is not None else None,
        context_tokens=next(filter(None, map(parse_token_count, lengths)), None),
        input_price=_parse_price(prices.get("prompt")),
        cached_price=_parse_price(prices.get("input_cache_read")),
        output_price=_parse_price(prices.get("completion")),
    )


def _parse_price(value: Any) -> Decimal | None:
    """Return dollars per million tokens for dollars per token, as OpenRouter has it."""
    if not isinstance(value, str):
        return None
    try:
        price = (Decimal(value) * MILLION).quantize(SMALLEST_PRICE)
    except ArithmeticError:
        return None
    return price if price.is_finite() and 0 <= price < HIGHEST_PRICE else None


def _parse_modality(name: str, message: dict[str, Any], capability: Any) -> bool | None:
    """Return whether a model takes such inputs, as OpenRouter or Mistral report it."""
    shape = message.get("architecture")
    inputs = shape.get("input_modalities") if isinstance(shape, dict) else None
    if isinstance(inputs, list):
        return name in inputs
    return capability if isinstance(capability, bool) else None
