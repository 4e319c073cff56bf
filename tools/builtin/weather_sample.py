"""Made-up weather for trying things out: the same for the same city, and labeled."""

import hashlib
from typing import Literal, TypedDict

from tools.registry import tool

Language = Literal["en", "zh"]

LABEL: dict[Language, str] = {
    "en": "SAMPLE DATA for demonstration, not a real forecast",
    "zh": "示例数据，仅供演示，并非真实天气预报",
}
CONDITIONS: dict[Language, tuple[str, ...]] = {
    "en": ("sunny", "partly cloudy", "cloudy", "light rain", "showers"),
    "zh": ("晴", "多云", "阴", "小雨", "阵雨"),
}
RAIN = (0, 10, 25, 70, 85)
"""Probability of rain in percent, for each of the conditions."""

DAYS: dict[Language, tuple[str, ...]] = {
    "en": ("today", "tomorrow", "the day after tomorrow"),
    "zh": ("今天", "明天", "后天"),
}


class SampleDay(TypedDict):
    """One made-up day."""

    day: str
    conditions: str
    high_c: int
    low_c: int
    rain_percent: int


class SampleWeather(TypedDict):
    """Three made-up days, with the label first."""

    label: str
    city: str
    days: list[SampleDay]


@tool(effect="read", timeout=5, name="weather_sample")
def weather_sample(city: str, day: str | None = None) -> SampleWeather:
    """Return made-up sample weather of a city for three days, for demonstrations.

    Args:
        city: Name of the city.
        day: The first of the three days, in words or as a date; today if left out.
    """
    is_chinese = any("\u4e00" <= c <= "\u9fff" for c in city)
    language: Language = "zh" if is_chinese else "en"
    first = (day or "").strip()
    names = DAYS[language]
    if first and first.lower() not in names[:1]:
        names = tuple(f"{first} + {n}" if n else first for n in range(3))
    return {
        "label": LABEL[language],
        "city": city,
        "days": [sample_day(city, name, language=language) for name in names],
    }


def sample_day(city: str, day: str, *, language: Language) -> SampleDay:
    """Return weather drawn from a hash of city and day."""
    seed = hashlib.sha256(f"{city.strip().lower()}|{day.lower()}".encode()).digest()
    sky = seed[0] % len(RAIN)
    high = 14 + seed[1] % 14 - 2 * (RAIN[sky] > 50)
    return {
        "day": day,
        "conditions": CONDITIONS[language][sky],
        "high_c": high,
        "low_c": high - 6 - seed[2] % 5,
        "rain_percent": RAIN[sky],
    }
