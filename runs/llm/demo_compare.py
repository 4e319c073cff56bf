"""What the demo model writes about days out in several cities, from their plans."""

import re

from runs.llm.demo_plan import (
    BEIJING,
    CITIES,
    City,
    Language,
    Weather,
    city_in,
    read_weather,
)

EXAMPLES = (BEIJING, next(city for city in CITIES if city.en == "Hangzhou"))
MOST_CITIES = 4
SIGNATURE = re.compile(r"\n\*[^*\n]+\*\Z")
"""The last line of a plan, which says who wrote it."""
ASK: dict[Language, str] = {
    "zh": "根据{}的天气，制定一个一日出游计划",
    "en": "Look at the weather in {} and plan a day out",
}
FIRST: dict[Language, str] = {
    "zh": "请出游规划师为每座城市各写一份计划：{}。",
    "en": "The travel planner writes a plan for each city: {}.",
}


def cities_in(text: str) -> tuple[City, ...]:
    """Return the cities that `text` names, in its order; two examples for none."""
    low = text.lower()
    places = {
        city: min(
            (at for at in (low.find(city.en.lower()), text.find(city.zh)) if at >= 0),
            default=-1,
        )
        for city in CITIES
    }
    named = sorted(
        (city for city in CITIES if places[city] >= 0), key=places.__getitem__
    )
    return tuple(named[:MOST_CITIES]) or EXAMPLES


def tasks(cities: tuple[City, ...], language: Language) -> tuple[str, ...]:
    """Return what the travel planner is asked, once for each city."""
    return tuple(ASK[language].replace("{}", name(city, language)) for city in cities)


def thought(cities: tuple[City, ...], language: Language) -> str:
    """Return the words with which it is asked."""
    joint = "、" if language == "zh" else ", "
    return FIRST[language].replace("{}", joint.join(name(c, language) for c in cities))


def compare(plans: tuple[str, ...], language: Language) -> str:
    """Return the plans below one another, and which day has the better weather."""
    zh = language == "zh"
    parts = ["# 出游比较" if zh else "# Days out, compared", "", best(plans, language)]
    for plan in plans:
        body = SIGNATURE.sub("", plan.strip()).strip()
        parts += ["", re.sub(r"^#", "##", body, flags=re.MULTILINE)]
    return "\n".join(parts) + "\n"


def best(plans: tuple[str, ...], language: Language) -> str:
    """Say where it is driest, or that nobody knows."""
    found = [(city_in(plan), read_weather(plan)) for plan in plans]
    known = [(city, weather) for city, weather in found if city and weather.is_known]
    if not known:
        return (
            "没有一份计划读到了天气，所以无法比较。"
            if language == "zh"
            else "No plan has read the weather, so there is nothing to compare."
        )
    city, weather = min(known, key=lambda pair: badness(pair[1]))
    rain = f"{weather.rain or 0:g}%"
    if language == "zh":
        return (
            f"**天气更好的是{city.zh}**（降雨概率 {rain}，最高 {weather.high:g} °C）。"
        )
    return (
        f"**{city.en} has the better weather** ({rain} chance of rain, up to "
        f"{weather.high:g} °C)."
    )


def badness(weather: Weather) -> tuple[float, float]:
    """Order weathers: the least rain first, then the mildest."""
    return weather.rain or 0.0, abs((weather.high or 0.0) - 22)


def name(city: City, language: Language) -> str:
    """Return the city's name in a language."""
    return city.zh if language == "zh" else city.en
