"""What the demo model answers: a script that depends on the request alone."""

import json
import re
from dataclasses import dataclass
from typing import Any

from runs.engine.types import ModelRequest
from runs.llm.chat import schema_of
from runs.llm.demo_compare import cities_in, compare, tasks, thought
from runs.llm.demo_plan import BEIJING, Language, city_in, language_of, plan
from runs.llm.demo_text import Form, action_in, answer_in, read_prompt
from tools.spec import ToolSpec

HONEST: dict[Language, str] = {
    "zh": (
        "我是演示模型：我只按脚本回答，不会思考。我会做一件事："
        "先用天气工具查询天气，再为这座城市写一份出游计划，例如"
        "“根据北京的天气情况，制定一个出游计划”。"
        "要让智能体回答别的问题，请在“Providers”页面连接一个真正的模型。"
    ),
    "en": (
        "This is the demo model: it follows a script and does not think. It can do one"
        " thing: ask the weather tool, then write a plan for a day out, for example"
        ' "Plan a day out in Beijing based on the weather". For all else, connect'
        " a real model on the Providers page."
    ),
}
SIGNED: dict[Language, str] = {
    "zh": "\n*由演示模型按脚本生成；数字来自天气工具的回答。*",
    "en": "\n*Written by the demo model from a script; the numbers are the tool's.*",
}
FIRST: dict[Language, str] = {
    "zh": "先查{}的天气。",
    "en": "First, the weather in {}.",
}
UNKNOWN_CITY: dict[Language, str] = {
    "zh": "问题里没有我认识的城市，就以{}为例。先查{}的天气。",
    "en": "I know no city in the question, so {} is the example. First, its weather.",
}
NOT_YOURS: dict[Language, str] = {
    "zh": "*问题里没有演示模型认识的城市，下面以{}为例。*\n\n",
    "en": "*The demo model knows no city in the question; {} is its example.*\n\n",
}
TRIP = re.compile(
    r"天气|出游|旅行|旅游|行程|出行|游玩|一日|周末"
    r"|weather|trip|\bdays?\b|weekend|travel|outing|visit|plan",
    re.IGNORECASE,
)
SLOW_PARAGRAPHS = 60


@dataclass(frozen=True)
class Line:
    """One reply of the script: words, and maybe a call."""

    text: str
    tool: str = ""
    arguments: str = ""
    more: tuple[str, ...] = ()
    """Arguments of further calls of the tool, side by side."""


@dataclass(frozen=True)
class Scene:
    """What the demo model understands of a request."""

    question: str
    observations: tuple[str, ...]
    tools: tuple[ToolSpec, ...]
    form: Form | None = None
    """The text format calls and answers are written in; None for function calling."""

    @property
    def language(self) -> Language:
        """The language of the question."""
        return language_of(self.question)

    def tool_about(self, word: str) -> ToolSpec | None:
        """Return the first tool whose name has `word` in it."""
        return next((one for one in self.tools if word in one.name.lower()), None)


def scene_of(request: ModelRequest) -> Scene:
    """Return the question, what was observed since, and the tools on offer."""
    messages = request.messages
    asked = max((i for i, one in enumerate(messages) if one.role == "user"), default=-1)
    text = messages[asked].text if asked >= 0 else ""
    if request.tools or any(one.role == "tool" for one in messages):
        answers = tuple(one.text for one in messages[asked + 1 :] if one.role == "tool")
        return Scene(text, answers, request.tools)
    told = read_prompt(messages)
    return Scene(told.question, told.observations, told.tools, form=told.form)


def next_line(model: str, request: ModelRequest) -> Line:
    """Return what `model` says to `request`, in the format it is to answer in."""
    scene = scene_of(request)
    line = _line(model, scene)
    if scene.form is None:
        return line
    if line.tool:
        return Line(action_in(scene.form, line.text, line.tool, line.arguments))
    return Line(answer_in(scene.form, line.text))


def _line(model: str, scene: Scene) -> Line:
    if model == "demo-slow":
        return Line(_long_text(scene.language))
    if model == "demo-approval":
        return _ask_first(scene)
    planner = scene.tool_about("planner")
    if planner is not None and scene.tool_about("weather") is None:
        return _compare_days(scene, planner)
    return _plan_a_day(scene)


def _compare_days(scene: Scene, planner: ToolSpec) -> Line:
    """Ask another agent for a plan for each city, then compare them."""
    language, cities = scene.language, cities_in(scene.question)
    if scene.form is not None:  # one call a reply
        cities = cities[:1]
    if scene.observations:
        return Line(compare(scene.observations, language) + SIGNED[language])
    first, *more = [arguments_for(planner, text) for text in tasks(cities, language)]
    if scene.form is not None:
        first = tasks(cities, language)[0]
    return Line(thought(cities, language), planner.name, first, tuple(more))


def _plan_a_day(scene: Scene) -> Line:
    weather = scene.tool_about("weather")
    city = city_in(scene.question)
    is_asked = city is not None or TRIP.search(scene.question)
    if not is_asked or (weather is None and not scene.observations):
        return Line(HONEST[scene.language])
    place = city or BEIJING
    name = place.zh if scene.language == "zh" else place.en
    if scene.observations:
        answer = plan(place, scene.observations[-1], scene.language)
        if city is None:
            answer = NOT_YOURS[scene.language].replace("{}", name) + answer
        return Line(answer + SIGNED[scene.language])
    if weather is None:
        return Line(HONEST[scene.language])
    arguments = arguments_for(weather, name)
    if scene.form is not None:
        arguments = json.dumps({"city": name}, ensure_ascii=False)
    thought = (FIRST if city else UNKNOWN_CITY)[scene.language]
    return Line(thought.replace("{}", name), weather.name, arguments)


def _ask_first(scene: Scene) -> Line:
    zh = scene.language == "zh"
    if scene.observations:
        said = scene.observations[-1]
        return Line(
            f"对这次调用的回答是：\n\n{said}"
            if zh
            else f"This is what came of the call:\n\n{said}"
        )
    tool = next((one for one in scene.tools if one.effect == "side_effect"), None)
    if tool is None:
        return Line(
            "没有带副作用的工具可用，请先给智能体加一个。"
            if zh
            else "No tool with a side effect is on offer; give the agent one first."
        )
    thought = f"我要调用 {tool.name}。" if zh else f"I want to call {tool.name}."
    return Line(thought, tool.name, arguments_for(tool, scene.question))


def arguments_for(tool: ToolSpec, text: str) -> str:
    """Return arguments that fit the tool's schema; `text` wherever a text is wanted."""
    if tool.args_schema is None:
        return json.dumps({"input": text}, ensure_ascii=False)
    schema = schema_of(tool)
    properties = schema.get("properties", {})
    required = schema.get("required", [])
    wanted = [one for one in properties if one in required] or list(properties)[:1]
    values = {name: _value(properties[name], text) for name in wanted}
    return json.dumps(values, ensure_ascii=False)


def _value(schema: Any, text: str) -> Any:
    schema = schema if isinstance(schema, dict) else {}
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    if schema.get("enum"):
        return schema["enum"][0]
    simple = {"integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}
    kind = schema.get("type")
    if kind in ("integer", "number"):
        return schema.get("minimum", simple[kind])
    return simple.get(kind, text) if isinstance(kind, str) else text


def _long_text(language: Language) -> str:
    if language == "zh":
        lines = [
            f"第 {n} 段：这是演示模型的一篇长文，它写得很慢，好让你试试“停止”按钮。"
            for n in range(1, SLOW_PARAGRAPHS + 1)
        ]
    else:
        lines = [
            f"Paragraph {n}: this is a long text of the demo model, written slowly so"
            " that you can try the Stop button."
            for n in range(1, SLOW_PARAGRAPHS + 1)
        ]
    return "\n\n".join(lines)
