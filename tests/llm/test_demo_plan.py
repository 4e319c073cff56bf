"""Tests of the demo's reading of weather, and of what it plans."""

import pytest

from runs.llm.demo_plan import BEIJING, Weather, city_in, plan, read_weather

OBSERVATIONS = {
    "flat": (
        '{"temp_low_c": 7, "temp_high_c": 19, "rain_chance": 65, "wind_kmh": 21,'
        ' "condition": "rain"}',
        Weather(low=7, high=19, rain=65, wind="21 km/h", sky="rain"),
    ),
    "days": (
        '{"days": [{"high_c": 20, "low_c": 11, "rain_percent": 0, "conditions": "晴"},'
        ' {"high_c": 1}]}',
        Weather(low=11, high=20, rain=0, sky="晴"),
    ),
    "one temperature": (
        '{"temperature": 20.5, "feels_like_temp": 3, "precipitation_mm": 9}',
        Weather(high=20.5),
    ),
    "range": (
        "Beijing: sunny, 12 to 24 °C, 10 % rain, 14 km/h",
        Weather(low=12, high=24, rain=10, wind="14 km/h"),
    ),
    "chinese": ("北京 -3~5℃,降水概率 20%", Weather(low=-3, high=5, rain=20)),
    "two temperatures": ("high 20 °C, low 8 °C", Weather(low=8, high=20)),
    "nothing": ("The tool failed.", Weather()),
    "no object": ("[]", Weather()),
    "abyss": ("[" * 100_000, Weather()),
    "true": ('{"hot": true}', Weather()),
}


@pytest.mark.parametrize(
    ("told", "weather"), OBSERVATIONS.values(), ids=OBSERVATIONS.keys()
)
def test_reads_weather_in_many_shapes(told, weather):
    assert read_weather(told) == weather


@pytest.mark.parametrize("language", ["zh", "en"])
def test_says_so_where_there_is_no_weather(language):
    told = plan(BEIJING, "The tool\nfailed.", language)

    assert "> The tool failed." in told


@pytest.mark.parametrize(
    ("observation", "pieces"),
    [
        (
            "5 to 16 °C, 80 % rain",
            ("National Museum", "umbrella (80%", "coat (down to 5"),
        ),
        (
            "20 to 34 °C, 5 % rain",
            ("Summer Palace", "sun cream and water (up to 34 °C)"),
        ),
        ("8 to 25 °C, 30 % rain", ("17 °C between morning", "umbrella (30%")),
        ("18 °C", ("**Weather:** 18 °C.", "comfortable shoes")),
    ],
    ids=["wet", "hot", "wide", "mild"],
)
def test_the_plan_follows_the_numbers(observation, pieces):
    told = plan(BEIJING, observation, "en")

    for piece in pieces:
        assert piece in told


@pytest.mark.parametrize(
    ("observation", "pieces"),
    [
        (
            "5 to 16 °C, 80 % rain",
            ("国家博物馆", "降雨概率 80%", "最低 5 °C", "温差 11"),
        ),
        ("20 to 34 °C, 5 m/s", ("颐和园", "最高 34 °C", "风速 5 m/s")),
        ('{"temp_max": 18, "sky": "晴"}', ("晴，气温 18 °C", "舒适的鞋子")),
    ],
    ids=["wet", "hot", "mild"],
)
def test_the_chinese_plan_follows_the_numbers(observation, pieces):
    told = plan(BEIJING, observation, "zh")

    for piece in pieces:
        assert piece in told


def test_the_last_city_named_counts():
    found = city_in("Not Paris this time, but LONDON")

    assert found is not None
    assert found.en == "London"
    assert city_in("somewhere") is None


@pytest.mark.parametrize(
    ("question", "city"),
    [
        ("Plan a day out in Oslo that fits the weather", "Oslo"),
        ("Look at the weather in Reykjavík and plan a day out", "Reykjavík"),
    ],
)
def test_knows_each_city_that_newcomers_are_offered(question, city):
    assert city_in(question).en == city
