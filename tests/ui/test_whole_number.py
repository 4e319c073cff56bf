import pytest

from runs.models import Run
from runs.whole_number import parse_whole_number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        pytest.param("0", 0, id="zero"),
        pytest.param("12", 12, id="digits"),
        pytest.param("007", 7, id="zeros-before"),
        pytest.param("9223372036854775807", 2**63 - 1, id="highest"),
    ],
)
def test_reads_digits(text, number):
    assert parse_whole_number(text) == number


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("9223372036854775808", id="one-too-many"),
        pytest.param("9" * 5000, id="longer-than-python-reads"),
        pytest.param("-1", id="minus"),
        pytest.param("+1", id="plus"),
        pytest.param(" 1", id="space-before"),
        pytest.param("1\n", id="line-end"),
        pytest.param("1_000", id="underscore"),
        pytest.param("1.0", id="point"),
        pytest.param("0x1", id="hexadecimal"),
        pytest.param("٣", id="arabic-digit"),
        pytest.param("²", id="superscript"),
        pytest.param("new", id="word"),
    ],
)
def test_takes_nothing_else(text):
    assert parse_whole_number(text) is None


@pytest.mark.django_db
def test_the_database_takes_the_highest():
    highest = parse_whole_number(str(2**63 - 1))

    assert not Run.objects.filter(pk__in=[highest]).exists()
    assert not Run.objects.filter(pk=highest).exists()
