"""Variables of code that failed, as the page of the tool shows them."""

import pytest

from tools.sandbox.failed_frame import (
    MAX_VALUE_TEXT,
    MAX_VARIABLES,
    FailedFrame,
    VariableText,
    parse_failed_frame,
)
from tools.services.mask_variables import MAX_SHOWN, mask_frame


def masked(name, value, arguments=None):
    frame = FailedFrame(3, (VariableText(name, value),))
    return mask_frame(frame, arguments or {}).variables[0].value


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("day", "datetime.date(2026, 11, 25)", "datetime.date(2026, 11, 25)"),
        ("api_key", "'abc'", "[secret]"),
        ("row", "{'password': 'a\\'b', 'n': 1}", "{'password': [secret], 'n': 1}"),
        ("row", "{'password': b'cut of", "{'password': [secret]"),
        ("one", "Login(token='abc', n=1)", "Login(token=[secret], n=1)"),
        ("url", "'https://a.example/?key=abc&n=1'", None),
        ("header", "'Bearer s3cret/1'", "'Bearer [secret]'"),
        ("header", "'Bearer s3cret%2F1'", "'Bearer [secret]'"),
    ],
)
def test_secrets_are_masked_by_name_and_wherever_they_occur(name, value, shown):
    found = masked(name, value, {"auth": {"token": "s3cret/1"}, "n": "1"})

    assert found == (shown or "'https://a.example/?key=[secret]&n=1'")


def test_long_values_are_cut():
    assert masked("text", "x" * 400) == "x" * MAX_SHOWN + "…"


def test_what_code_wrote_itself_is_bounded():
    pairs = [["n" * 1000, "v" * 1000], ["a"], [1, 2], "ab", *[["n", "v"]] * 100]

    found = parse_failed_frame({"line": 2, "variables": pairs})

    assert len(found.variables) <= MAX_VARIABLES
    assert len(found.variables[0].value) == MAX_VALUE_TEXT
    assert len(found.variables[0].name) == 80


@pytest.mark.parametrize(
    "raw", [None, 5, [], {}, {"line": "2", "variables": []}, {"line": 2}]
)
def test_what_is_not_a_frame_is_left_out(raw):
    assert parse_failed_frame(raw) is None
