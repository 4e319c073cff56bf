"""The weather tool against a server that speaks Open-Meteo's format."""

import pytest

from tests.tools.http_server import Answer, Got, loopback, serve
from tests.tools.make import call_builtin
from tools.builtin.weather import fetch_forecast
from tools.errors import ToolFailed
from tools.net.deadline import Deadline
from tools.net.netguard import NetPolicy

BEIJING = {
    "results": [
        {
            "id": 1816670,
            "name": "北京",
            "latitude": 39.9075,
            "longitude": 116.39723,
            "country": "China",
            "timezone": "Asia/Shanghai",
        }
    ],
    "generationtime_ms": 0.5,
}
DAYS = {
    "latitude": 39.875,
    "longitude": 116.375,
    "timezone": "Asia/Shanghai",
    "daily_units": {"temperature_2m_max": "°C"},
    "daily": {
        "time": ["2026-11-21", "2026-11-22"],
        "weather_code": [0, 61],
        "temperature_2m_max": [12.3, 9.8],
        "temperature_2m_min": [1.0, 0.4],
        "precipitation_probability_max": [0, None],
        "wind_speed_10m_max": [14.2, 20.1],
    },
}


def open_meteo(got: Got) -> Answer:
    return Answer(BEIJING if got.path == "/v1/search" else DAYS)


def ask(url, city="北京", days=2, policy=None):
    return fetch_forecast(
        city,
        days,
        deadline=Deadline(seconds=5),
        policy=policy or loopback(),
        geocoding=f"{url}/v1/search",
        forecast=f"{url}/v1/forecast",
    )


def test_returns_the_forecast_day_by_day():
    with serve(open_meteo) as server:
        message = ask(server.url)

    assert (message["place"], message["country"], message["source"]) == (
        *("北京", "China"),
        "Open-Meteo",
    )
    assert message["days"] == [
        {
            "date": "2026-11-21",
            "conditions": "clear sky",
            "high_c": 12.3,
            "low_c": 1.0,
            "rain_percent": 0,
            "wind_kmh": 14.2,
        },
        {
            "date": "2026-11-22",
            "conditions": "light rain",
            "high_c": 9.8,
            "low_c": 0.4,
            "rain_percent": None,
            "wind_kmh": 20.1,
        },
    ]


def test_asks_for_the_place_that_was_found():
    with serve(open_meteo) as server:
        ask(server.url, days=99)

    search, forecast = server.got
    assert search.query["name"] == "北京"
    assert forecast.query["latitude"] == "39.9075"
    assert forecast.query["forecast_days"] == "16"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Answer({"generationtime_ms": 1}), "knows no place called '北京'"),
        (
            Answer({"error": True, "reason": "Daily limit exceeded"}, status=429),
            "answered 429: Daily limit exceeded",
        ),
        (
            Answer(b"<html>", status=502, content_type="text/html"),
            "text/html instead of JSON",
        ),
        (Answer([1]), "answered 200: no reason given"),
    ],
)
def test_an_answer_without_a_forecast_is_a_sentence(answer, why):
    with serve(lambda got: answer) as server, pytest.raises(ToolFailed, match=why):
        ask(server.url)


def test_no_server_is_a_sentence():
    with serve(open_meteo) as server:
        url = server.url

    with pytest.raises(ToolFailed, match="Cannot get an answer from http://127.0.0.1"):
        ask(url)


def test_the_tool_does_not_reach_loopback_unless_the_operator_says_so():
    with serve(open_meteo) as server, pytest.raises(ToolFailed, match="not allowed"):
        ask(server.url, policy=NetPolicy())

    assert server.got == []


def test_the_number_of_days_is_checked():
    with pytest.raises(ToolFailed, match="days"):
        call_builtin("weather", "weather", city="Rome", days="many")
