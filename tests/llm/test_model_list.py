"""What servers report about their models."""

from decimal import Decimal

import pytest

from runs.llm.model_list import parse_model_list
from runs.llm.ollama import parse_model_details


@pytest.mark.parametrize(
    ("message", "images"),
    [
        ({"architecture": {"input_modalities": ["text", "image"]}}, True),
        ({"architecture": {"input_modalities": ["text"]}}, False),
        ({"capabilities": {"vision": True}}, True),
        ({"capabilities": {"vision": "yes"}}, None),
        ({"architecture": 5}, None),
        ({}, None),
    ],
)
def test_says_whether_a_model_reads_images(message, images):
    (card,) = parse_model_list({"data": [{"id": "m", **message}]})

    assert card.images is images


@pytest.mark.parametrize(
    ("message", "audio"),
    [
        ({"architecture": {"input_modalities": ["text", "audio"]}}, True),
        ({"architecture": {"input_modalities": ["text", "image"]}}, False),
        ({"capabilities": {"audio": True}}, True),
        ({"capabilities": {"vision": True}}, None),
        ({}, None),
    ],
)
def test_says_whether_a_model_takes_sounds(message, audio):
    (card,) = parse_model_list({"data": [{"id": "m", **message}]})

    assert card.audio is audio


@pytest.mark.parametrize(
    ("message", "images"),
    [
        ({"capabilities": ["completion", "vision"]}, True),
        ({"capabilities": ["tools"]}, False),
        ({}, None),
    ],
)
def test_ollama_names_vision_among_the_capabilities(message, images):
    assert parse_model_details("m", message).images is images


@pytest.mark.parametrize(
    ("pricing", "price"),
    [
        pytest.param({"prompt": "0.00000025"}, Decimal("0.25"), id="price"),
        pytest.param({"prompt": "0"}, Decimal(0), id="free"),
        pytest.param({"prompt": "-1"}, None, id="varies"),
        pytest.param({"prompt": "NaN"}, None, id="no-number"),
        pytest.param({"prompt": "1e30"}, None, id="too-high"),
        pytest.param({"prompt": "1e999999"}, None, id="overflow"),
        pytest.param({"prompt": ["1"]}, None, id="no-text"),
        pytest.param("free", None, id="no-object"),
    ],
)
def test_reads_the_price_of_a_token_as_that_of_a_million(pricing, price):
    (card,) = parse_model_list({"data": [{"id": "m", "pricing": pricing}]})

    assert card.input_price == price
