"""Tests of kind `demo`: what the script says, and how it arrives."""

import json
import time

import pytest

from runs.engine.effects import CallModel, ModelAnswered, ToolResult, ToolsAnswered
from runs.engine.executor import execute
from runs.engine.kinds.registry import KINDS
from runs.engine.types import AgentSpec, Message, ModelSettings, Result
from runs.llm.errors import ModelFailed
from tests.llm.make import WEATHER, make_llm, make_request, soon
from tests.timing import assert_quick, tries
from tools.builtin.weather_sample import weather_sample
from tools.errors import DeadlinePassed
from tools.spec import ToolSpec

SEND = ToolSpec(
    name="send_note",
    args_schema={"type": "object", "properties": {"text": {"type": "string"}}},
)
FAST = {"words_per_second": 100_000}
OBSERVED = (
    '{"city": "Beijing", "condition": "light rain", "temp_low_c": 7, "temp_high_c": 19,'
    ' "rain_chance_percent": 65, "wind_kmh": 21, "note": "sample data"}'
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
def test_asks_for_the_weather_and_plans_with_its_numbers(question, city, title):
    llm = make_llm("", kind="demo")
    first = make_request(question, model="demo-planner", tools=(WEATHER,))
    call = llm.ask(first, watch=soon()).tool_calls[0]
    asked = Message(role="assistant", tool_calls=(call,))
    told = Message.of("tool", OBSERVED, tool_call_id=call.id)
    second = make_request(
        question, asked, told, model="demo-planner", tools=(WEATHER,), parameters=FAST
    )
    heard: list[str] = []
    reply = llm.ask(second, watch=soon(), on_text=heard.append)

    assert call.name == "weather_sample"
    assert f'"{city}"' in call.arguments
    assert reply.text.startswith(title)
    assert "".join(heard) == reply.text
    for number in ("7", "19", "65%", "21 km/h", "light rain"):
        assert number in reply.text


def finished(kind: str, question: str, *, model: str = "demo-planner") -> Result:
    """Run an agent of `kind` on the demo model, with the real sample weather."""
    tools = (WEATHER,) if model == "demo-planner" else (SEND,)
    spec = AgentSpec(kind=kind, model=ModelSettings(model=model), tools=tools)
    llm = make_llm("", kind="demo")
    run = execute(spec, {"input": question})
    effect = next(run)
    try:
        while True:
            if isinstance(effect, CallModel):
                reply = llm.ask(effect.request, watch=soon())
                effect = run.send(ModelAnswered(reply))
            else:
                results = [_result(step.action.tool_input) for step in effect.steps]
                effect = run.send(ToolsAnswered(tuple(results)))
    except StopIteration as end:
        return end.value


def _result(tool_input: object) -> ToolResult:
    if isinstance(tool_input, dict) and "city" in tool_input:
        observed = weather_sample(tool_input["city"])
        return ToolResult(json.dumps(observed, ensure_ascii=False))
    return ToolResult("sent")


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("根据北京的天气情况,制定一个出游计划", "# 北京一日出游计划"),
        ("Plan a day out in Beijing based on the weather", "# A day out in Beijing"),
    ],
    ids=["Chinese", "English"],
)
@pytest.mark.parametrize("kind", KINDS)
def test_plans_a_day_out_for_agents_of_every_kind(kind, question, title):
    result = finished(kind, question)
    high = weather_sample("北京" if "北京" in question else "Beijing")["days"][0][
        "high_c"
    ]

    assert result.status == "succeeded"
    assert str(result.output).startswith(title)
    assert f"{high} °C" in str(result.output)


@pytest.mark.parametrize("kind", ["tool-calling", "react", "json-chat"])
def test_the_approval_model_calls_the_tool_with_the_side_effect(kind):
    result = finished(kind, "Tell Ann", model="demo-approval")

    assert result.status == "succeeded"
    assert str(result.output).startswith("This is what came of the call:\n\nsent")


@pytest.mark.parametrize("question", ["A day in Lisbon", "What to do this weekend?"])
def test_shows_what_it_can_when_a_newcomer_asks_in_other_words(question):
    result = finished("tool-calling", question)

    assert "The demo model knows no city in the question" in str(result.output)
    assert "# A day out in Beijing" in str(result.output)


def test_says_honestly_what_it_is():
    llm = make_llm("", kind="demo")
    reply = llm.ask(make_request("What is 2+2?", model="demo-planner"), watch=soon())

    assert "This is the demo model" in reply.text


@tries(4)
def test_the_slow_model_stops_when_its_time_is_over():
    llm = make_llm("", kind="demo")
    began = time.monotonic()

    with pytest.raises(DeadlinePassed):
        llm.ask(
            make_request(model="demo-slow"), watch=soon(0.3), on_text=lambda _: None
        )
    assert_quick(time.monotonic() - began, 1)


def test_names_its_models_for_an_unknown_one():
    llm = make_llm("", kind="demo")

    with pytest.raises(ModelFailed, match="It has demo-planner, "):
        llm.ask(make_request(model="gpt-5"), watch=soon())


def test_the_failing_model_fails_like_a_busy_server():
    llm = make_llm("", kind="demo")

    with pytest.raises(ModelFailed) as caught:
        llm.ask(make_request(model="demo-fails"), watch=soon())
    assert (caught.value.status, caught.value.may_retry) == (503, True)


def test_lists_its_models_and_closes():
    llm = make_llm("", kind="demo")
    names = [card.name for card in llm.list_models(watch=soon())]
    llm.close()

    assert names == ["demo-planner", "demo-approval", "demo-slow", "demo-fails"]


@pytest.mark.parametrize(
    "question", ["告诉小安", "Tell Ann"], ids=["Chinese", "English"]
)
def test_the_approval_model_asks_for_a_tool_if_it_has_none(question):
    llm = make_llm("", kind="demo")
    request = make_request(question, model="demo-approval", tools=(WEATHER,))
    reply = llm.ask(request, watch=soon())

    assert reply.text.startswith(("没有带副作用的工具", "No tool with a side effect"))


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        (None, {"input": "Tell Ann"}),
        ({"properties": {"text": {"type": "string"}}}, {"text": "Tell Ann"}),
        ({"properties": {"a": {}, "b": True}, "required": ["b"]}, {"b": "Tell Ann"}),
        ({"properties": {"n": {"type": "integer", "minimum": 3}}}, {"n": 3}),
        ({"properties": {"n": {"type": "number"}}}, {"n": 1}),
        ({"properties": {"n": {"type": "boolean"}}}, {"n": True}),
        ({"properties": {"n": {"type": "array"}}}, {"n": []}),
        ({"properties": {"n": {"enum": ["x", "y"]}}}, {"n": "x"}),
        ({"properties": {"n": {"default": 7}}}, {"n": 7}),
        ({"properties": {"n": {"type": ["string", "null"]}}}, {"n": "Tell Ann"}),
        ({"properties": {}}, {}),
    ],
    ids=str,
)
def test_the_approval_model_fills_in_what_the_schema_wants(schema, arguments):
    llm = make_llm("", kind="demo")
    tool = ToolSpec(name="send_note", args_schema=schema)
    request = make_request("Tell Ann", model="demo-approval", tools=(tool,))
    call = llm.ask(request, watch=soon()).tool_calls[0]

    assert json.loads(call.arguments) == arguments


@pytest.mark.parametrize("question", ["慢慢写", "Write slowly"])
def test_the_slow_model_writes_a_lot(question):
    llm = make_llm("", kind="demo")
    reply = llm.ask(make_request(question, model="demo-slow"), watch=soon())

    assert len(reply.text) > 2000


def test_without_a_weather_tool_it_only_says_what_it_is():
    llm = make_llm("", kind="demo")
    request = make_request("Plan a trip to Paris", model="", tools=(SEND,))

    assert "follows a script" in llm.ask(request, watch=soon()).text


def test_an_empty_request_gets_an_answer():
    llm = make_llm("", kind="demo")
    request = make_request(Message.of("system", "x"), parameters=FAST)
    request = request.model_copy(update={"messages": (), "settings": request.settings})

    with pytest.raises(ModelFailed):
        llm.ask(request, watch=soon())
    named = request.settings.model_copy(update={"model": "demo-planner"})
    request = request.model_copy(update={"settings": named})
    assert llm.ask(request, watch=soon()).text
