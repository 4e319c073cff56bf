"""The weather forecast of Open-Meteo, which needs no key (https://open-meteo.com)."""

from typing import Any, TypedDict
from urllib.parse import urlencode

from tools.errors import ToolFailed
from tools.net.deadline import Deadline
from tools.net.http_exchange import Request, send_request
from tools.net.netguard import NetPolicy
from tools.net.outbound_policy import get_net_policy
from tools.registry import ToolContext, tool

GEOCODING_URL = "https://geocoding-api.open-meteo.com/v1/search"
FORECAST_URL = "https://api.open-meteo.com/v1/forecast"
MAX_DAYS = 16

DAILY_FIELDS = {
    "weather_code": "conditions",
    "temperature_2m_max": "high_c",
    "temperature_2m_min": "low_c",
    "precipitation_probability_max": "rain_percent",
    "wind_speed_10m_max": "wind_kmh",
}
"""Open-Meteo's names of what is asked for, and ours."""

CONDITIONS = {
    "0": "clear sky",
    "1": "mainly clear",
    "2": "partly cloudy",
    "3": "overcast",
    "45": "fog",
    "48": "freezing fog",
    "51": "light drizzle",
    "53": "drizzle",
    "55": "dense drizzle",
    "56": "light freezing drizzle",
    "57": "freezing drizzle",
    "61": "light rain",
    "63": "rain",
    "65": "heavy rain",
    "66": "light freezing rain",
    "67": "freezing rain",
    "71": "light snow",
    "73": "snow",
    "75": "heavy snow",
    "77": "snow grains",
    "80": "light showers",
    "81": "showers",
    "82": "violent showers",
    "85": "light snow showers",
    "86": "snow showers",
    "95": "thunderstorm",
    "96": "thunderstorm with hail",
    "99": "thunderstorm with heavy hail",
}
"""The WMO codes that Open-Meteo uses."""


class PlaceNotFound(ToolFailed):
    """No such place is known."""

    def __init__(self, city: str) -> None:
        super().__init__(
            f"Open-Meteo knows no place called {city[:80]!r}. Try the name of a larger "
            "city nearby, or another spelling."
        )


class WeatherRefused(ToolFailed):
    """The service answered, but not with a forecast."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(
            f"Open-Meteo answered {status}: {reason or 'no reason given'}."
        )


class Forecast(TypedDict):
    """The weather of a place, day by day."""

    place: str
    country: str
    time_zone: str
    days: list[dict[str, Any]]
    source: str


@tool(effect="read", timeout=20, keeps_hosts=True)
def weather(city: str, context: ToolContext, days: int = 3) -> Forecast:
    """Return the weather forecast of a city for the next days, from Open-Meteo.

    Args:
        city: Name of the city, in any language.
        days: How many days, 1 to 16, today being the first.
    """
    return fetch_forecast(
        city,
        days,
        deadline=context.deadline,
        policy=get_net_policy(only_hosts=context.hosts),
    )


def fetch_forecast(
    city: str,
    days: int,
    *,
    deadline: Deadline,
    policy: NetPolicy,
    geocoding: str = GEOCODING_URL,
    forecast: str = FORECAST_URL,
) -> Forecast:
    """Find the place, then ask for its forecast; raise `ToolFailed` with a sentence."""

    def ask(url: str, **query: Any) -> dict[str, Any]:
        address = f"{url}?{urlencode(query)}"
        answered = send_request(Request(address), policy=policy, deadline=deadline)
        message = answered.json()
        if answered.status != 200 or not isinstance(message, dict):
            reason = message.get("reason", "") if isinstance(message, dict) else ""
            raise WeatherRefused(answered.status, str(reason))
        return message

    places = ask(geocoding, name=city, count=1, format="json").get("results")
    if not places:
        raise PlaceNotFound(city)
    place = places[0]
    message = ask(
        forecast,
        latitude=place["latitude"],
        longitude=place["longitude"],
        daily=",".join(DAILY_FIELDS),
        timezone="auto",
        forecast_days=min(max(days, 1), MAX_DAYS),
    )
    return {
        "place": place.get("name", city),
        "country": place.get("country", ""),
        "time_zone": message.get("timezone", ""),
        "days": parse_forecast_days(message),
        "source": "Open-Meteo",
    }


def parse_forecast_days(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Turn columns into days; raise `WeatherRefused` if there are none."""
    daily = message.get("daily")
    if not isinstance(daily, dict) or not isinstance(daily.get("time"), list):
        raise WeatherRefused(200, "an answer without days")
    days: list[dict[str, Any]] = []
    for number, date in enumerate(daily["time"]):
        day: dict[str, Any] = {"date": date}
        for theirs, ours in DAILY_FIELDS.items():
            column = daily.get(theirs) or []
            day[ours] = column[number] if number < len(column) else None
        code = str(day["conditions"])
        day["conditions"] = CONDITIONS.get(code, "unknown")
        days.append(day)
    return days
