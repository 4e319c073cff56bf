"""The demo model: its script, and how replies arrive."""

import json

import pytest

from runs.engine.effects import CallModel, ModelReplied, ToolResult, ToolsFinished
from runs.engine.executor import run_agent_loop
from runs.engine.kinds.registry import AGENT_KINDS
from runs.engine.types import AgentResult, AgentSpec, Message, ModelSettings
from runs.llm.errors import ModelCallError
from tests.llm.make import WEATHER, make_llm, make_request, soon
from tools.builtin.weather_sample import weather_sample
from tools.errors import DeadlineExceeded
from tools.spec import ToolSpec

SEND = ToolSpec(
    name="send_note",
    args_schema={"type": "object", "properties": {"text": {"type": "string"}}},
)
FAST = {"words_per_second": 100_000}
OBSERVED = json.dumps(
    {
        "days": [
            {"conditions": "fog", "low_c": 7, "high_c": 19, "rain_percent": 65},
            {"conditions": "sunny", "low_c": 1, "high_c": 2, "rain_percent": 0},
        ]
    }
)
PLANNER = ToolSpec(
    name="travel-planner",
    kind="agent",
    args_schema={
        "type": "object",
        "properties": {"input": {"type": "string"}},
        "required": ["input"],
    },
)


@pytest.mark.parametrize(
    ("question", "city", "title"),
    [
        ("根据北京的天气情况,制定一个出游计划", "北京", "# 北京一日出游计划"),
        (
            "Plan a day out in Beijing based on the weather",
            "Beijing",
            "# A day out in Beijing",
        ),
    ],
    ids=["Chinese", "English"],
)
def test_calls_the_weather_tool_and_plans_with_its_numbers(question, city, title):
    llm = make_llm("", kind="demo")
    first = make_request(question, model="demo-planner", tools=(WEATHER,))
    call = llm.complete(first, deadline=soon()).tool_calls[0]
    asked = Message(role="assistant", tool_calls=(call,))
    message = Message.from_text("tool", OBSERVED, tool_call_id=call.id)
    second = make_request(
        question,
        asked,
        message,
        model="demo-planner",
        tools=(WEATHER,),
        parameters=FAST,
    )
    received: list[str] = []
    reply = llm.complete(second, deadline=soon(), on_text=received.append)

    assert call.name == "weather_sample"
    assert f'"{city}"' in call.arguments
    assert reply.text.startswith(title)
    assert "".join(received) == reply.text
    for fact in (
        "fog",
        "7",
        "19 °C",
        "65%",
        "umbrella" if city == "Beijing" else "雨伞",
    ):
        assert fact in reply.text


def finished(kind: str, question: str, *, edited: str = "") -> AgentResult:
    """Run an agent of `kind` on the demo model, with the real sample weather.

    With `edited`, a person changes the city of the call.
    """
    model = ModelSettings(model="demo-planner")
    spec = AgentSpec(kind=kind, model=model, tools=(WEATHER,))
    llm = make_llm("", kind="demo")
    run = run_agent_loop(spec, {"input": question})
    effect = next(run)
    try:
        while True:
            if isinstance(effect, CallModel):
                reply = llm.complete(effect.request, deadline=soon())
                effect = run.send(ModelReplied(reply))
            else:
                results = [
                    _result(step.action.tool_input, edited) for step in effect.steps
                ]
                effect = run.send(ToolsFinished(tuple(results)))
    except StopIteration as end:
        return end.value


def _result(tool_input: object, edited: str) -> ToolResult:
    assert isinstance(tool_input, dict)
    observed = weather_sample(edited or tool_input["city"])
    text = json.dumps(observed, ensure_ascii=False)
    notice = "A person changed the arguments of this call. It ran with {...}.\n"
    return ToolResult(notice + text if edited else text)


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("根据北京的天气情况,制定一个出游计划", "# 北京一日出游计划"),
        ("Plan a day out in Beijing based on the weather", "# A day out in Beijing"),
    ],
    ids=["Chinese", "English"],
)
@pytest.mark.parametrize("kind", AGENT_KINDS)
def test_plans_a_day_out_for_agents_of_every_kind(kind, question, title):
    result = finished(kind, question)
    high = weather_sample("北京" if "北京" in question else "Beijing")["days"][0][
        "high_c"
    ]

    assert result.status == "succeeded"
    assert str(result.output).startswith(title)
    assert f"{high} °C" in str(result.output)


@pytest.mark.parametrize("kind", AGENT_KINDS)
def test_plans_for_the_city_that_a_person_put_in_its_place(kind):
    result = finished(kind, "根据北京的天气情况,制定一个出游计划", edited="上海")

    assert str(result.output).startswith("# 上海一日出游计划")
    assert f"{weather_sample('上海')['days'][0]['high_c']} °C" in str(result.output)


@pytest.mark.parametrize("question", ["A day in Lisbon", "What to do this weekend?"])
def test_a_trip_question_without_a_known_city_gets_an_example_and_a_note(question):
    result = finished("tool-calling", question)

    assert "names no city that the demo model knows" in str(result.output)
    assert "# A day out in Beijing" in str(result.output)


def test_other_questions_get_a_description_of_the_demo():
    llm = make_llm("", kind="demo")
    reply = llm.complete(
        make_request("What is 2+2?", model="demo-planner"), deadline=soon()
    )

    assert "I am the demo model" in reply.text


def test_the_slow_model_stops_at_its_deadline():
    llm = make_llm("", kind="demo")

    with pytest.raises(DeadlineExceeded):
        llm.complete(
            make_request(model="demo-slow"), deadline=soon(0.3), on_text=lambda _: None
        )


def test_an_unknown_model_is_refused_with_the_known_ones():
    llm = make_llm("", kind="demo")

    with pytest.raises(ModelCallError, match="demo provider has demo-planner, "):
        llm.complete(make_request(model="gpt-5"), deadline=soon())


def test_the_failing_model_fails_like_a_busy_server():
    llm = make_llm("", kind="demo")

    with pytest.raises(ModelCallError) as caught:
        llm.complete(make_request(model="demo-fails"), deadline=soon())
    assert (caught.value.status, caught.value.may_retry) == (503, True)


def test_lists_its_models_and_closes():
    llm = make_llm("", kind="demo")
    names = [card.name for card in llm.list_models(deadline=soon())]
    llm.close()

    assert names == ["demo-planner", "demo-slow", "demo-fails"]


@pytest.mark.parametrize("question", ["慢慢写", "Write slowly"])
def test_the_slow_model_writes_a_lot(question):
    llm = make_llm("", kind="demo")
    reply = llm.complete(make_request(question, model="demo-slow"), deadline=soon())

    assert len(reply.text) > 2000


def test_without_a_weather_tool_it_describes_itself():
    llm = make_llm("", kind="demo")
    request = make_request("Plan a trip to Paris", model="", tools=(SEND,))

    assert "I follow a script" in llm.complete(request, deadline=soon()).text


def test_a_prompt_without_tools_calls_no_weather_tool():
    llm = make_llm("", kind="demo")
    question = "Plan a day out in Oslo that fits the weather"
    reply = llm.complete(make_request(question, model=""), deadline=soon())

    assert "I follow a script" in reply.text
    assert "Action:" not in reply.text


def test_an_empty_request_gets_an_answer():
    llm = make_llm("", kind="demo")
    request = make_request(Message.from_text("system", "x"), parameters=FAST)
    request = request.model_copy(update={"messages": (), "settings": request.settings})

    with pytest.raises(ModelCallError):
        llm.complete(request, deadline=soon())
    named = request.settings.model_copy(update={"model": "demo-planner"})
    request = request.model_copy(update={"settings": named})
    assert llm.complete(request, deadline=soon()).text


def compare(question, *later):
    request = make_request(
        question, *later, model="demo-planner", tools=(PLANNER,), parameters=FAST
    )
    return make_llm("", kind="demo").complete(request, deadline=soon())


@pytest.mark.parametrize(
    ("question", "cities"),
    [
        ("Where is a day out better, in Oslo or in Beijing?", ("Oslo", "Beijing")),
        ("周末去上海还是奥斯陆？", ("上海", "奥斯陆")),
        ("Where to this weekend?", ("Beijing", "Hangzhou")),
    ],
)
def test_calls_a_planner_agent_once_per_city(question, cities):
    calls = compare(question).tool_calls

    assert len({call.id for call in calls}) == 2
    for call, city in zip(calls, cities, strict=True):
        assert city in json.loads(call.arguments)["input"]


def test_compares_the_plans_that_agents_return():
    question = "Oslo or Beijing?"
    calls = compare(question).tool_calls
    plans = [
        Message.from_text("tool", f"# {plan}", tool_call_id=call.id)
        for call, plan in zip(calls, ("80% rain", "5% rain"), strict=True)
    ]
    reply = compare(question, Message(role="assistant", tool_calls=calls), *plans)

    assert not reply.tool_calls
    assert "**Beijing has the lowest chance of rain: 5%.**" in reply.text
    assert "\n## 80% rain\n## 5% rain" in reply.text


@pytest.mark.parametrize(
    "seen", ["The tool failed.", "[]", '{"days": [7]}', "{" * 9999]
)
def test_an_observation_without_weather_is_quoted(seen):
    request = make_request(
        "Plan a day in Oslo",
        Message.from_text("tool", seen, tool_call_id="1"),
        model="demo-planner",
        tools=(WEATHER,),
    )

    reply = make_llm("", kind="demo").complete(request, deadline=soon())
    assert reply.text == f"The tool returned:\n\n{seen}"


def test_the_pace_is_a_parameter():
    request = make_request(
        "Hello", model="demo-planner", parameters={"words_per_second": 1}
    )

    with pytest.raises(DeadlineExceeded):
        make_llm("", kind="demo").complete(
            request, deadline=soon(0.1), on_text=lambda _: None
        )
