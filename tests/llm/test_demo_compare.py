"""Two days out, compared by the demo model: another agent is asked for each."""

import pytest

from runs.engine.types import Message
from runs.llm.demo_compare import cities_in, compare
from runs.llm.demo_plan import BEIJING, CITIES, plan
from tests.llm.make import make_llm, make_request, soon
from tools.spec import ToolSpec

PLANNER = ToolSpec(
    name="travel-planner",
    kind="agent",
    args_schema={
        "type": "object",
        "properties": {"input": {"type": "string"}},
        "required": ["input"],
    },
)
OSLO = next(city for city in CITIES if city.en == "Oslo")
DRY = '{"temp_low_c": 12, "temp_high_c": 21, "rain_chance_percent": 5}'
WET = '{"temp_low_c": 7, "temp_high_c": 12, "rain_chance_percent": 80}'


def asked(question: str, *later: Message):
    request = make_request(
        question,
        *later,
        model="demo-planner",
        tools=(PLANNER,),
        parameters={"words_per_second": 100_000},
    )
    return make_llm("", kind="demo").ask(request, watch=soon(), on_text=lambda _: None)


def test_asks_for_each_city_in_one_reply():
    reply = asked("Where is a day out better, in Oslo or in Paris?")

    assert [call.name for call in reply.tool_calls] == ["travel-planner"] * 2
    assert len({call.id for call in reply.tool_calls}) == 2
    first, second = (call.arguments for call in reply.tool_calls)
    assert "Oslo" in first
    assert "Paris" in second


@pytest.mark.parametrize("language", ["en", "zh"])
def test_names_the_city_with_the_better_weather(language):
    plans = (plan(OSLO, WET, language), plan(BEIJING, DRY, language))

    text = compare(plans, language)

    better = text.splitlines()[2]
    assert ("Beijing" if language == "en" else "北京") in better
    assert "5%" in better
    assert text.count("\n## ") == 2
    assert text.count("\n# ") == 0
    assert text.count("| 09:00 |") == 2


def test_plans_come_back_compared():
    question = "Oslo or Beijing?"
    calls = asked(question).tool_calls
    told = [
        Message.of("tool", plan(city, seen, "en"), tool_call_id=call.id)
        for call, city, seen in zip(calls, (OSLO, BEIJING), (WET, DRY), strict=True)
    ]
    reply = asked(question, Message(role="assistant", tool_calls=calls), *told)

    assert "Beijing has the better weather" in reply.text
    assert not reply.tool_calls


def test_without_weather_nothing_is_compared():
    assert "nothing to compare" in compare(("It failed.",), "en")
    assert "无法比较" in compare(("It failed.",), "zh")


def test_without_a_city_two_are_the_example():
    assert [city.en for city in cities_in("Where to?")] == ["Beijing", "Hangzhou"]
    assert [city.en for city in cities_in("上海还是 Oslo")] == ["Shanghai", "Oslo"]
