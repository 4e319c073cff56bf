"""Observations as text, and where they are cut."""

import pytest

from runs.engine.observations import (
    MAX_STORED_BYTES,
    stringify_value,
    truncate_for_model,
    truncate_for_storage,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        ("  as it is\n", "  as it is\n"),
        ({"城市": "北京", "n": [1, 2.5]}, '{"城市":"北京","n":[1,2.5]}'),
        (True, "true"),
        (float("nan"), "null"),
        ("a\x00", "a\ufffd"),
    ],
)
def test_values_become_compact_json_and_texts_stay(value, text):
    assert stringify_value(value) == text


def test_a_short_observation_is_shown_whole():
    assert truncate_for_model("é" * 10, 20) == "é" * 10


def test_a_long_observation_is_cut_between_letters_and_marked():
    cut = truncate_for_model("é" * 10, 5)

    assert cut == "éé\n[cut: 5 of 20 bytes are shown to you]"


def test_a_mebibyte_is_stored():
    cut = truncate_for_storage("x" * (MAX_STORED_BYTES + 1))

    assert cut.startswith("x" * MAX_STORED_BYTES + "\n[cut: ")
    assert truncate_for_storage("x" * MAX_STORED_BYTES) == "x" * MAX_STORED_BYTES
