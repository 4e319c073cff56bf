"""What servers report about their models."""

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
