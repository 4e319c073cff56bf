"""The replies of the demo model: a script that depends on the request alone."""

import json
import re
from typing import Any, NamedTuple

from runs.engine.types import ModelRequest
from runs.llm.demo.text import format_demo_action, format_demo_answer, parse_text_prompt
from tools.spec import ToolSpec

CITIES = {
    "Beijing": "北京",
    "Hangzhou": "杭州",
    "Shanghai": "上海",
    "Berlin": "柏林",
    "London": "伦敦",
    "New York": "纽约",
    "Oslo": "奥斯陆",
    "Paris": "巴黎",
    "Reykjavík": "雷克雅未克",
    "Tokyo": "东京",
}
"""English name to Chinese name; the first two are the examples."""

MAX_CITIES = 4
TRIP_WORDS = re.compile(
    r"天气|游|旅行|行程|出行|一日|周末|weather|trip|\bdays?\b|weekend|travel|visit|plan",
    re.IGNORECASE,
)
EN = {
    "about": (
        "I am the demo model: I follow a script and do not think. I can do one thing:"
        " call the weather tool, then plan a day out, for example “Plan a day out in"
        " Beijing based on the weather”. To ask anything else, connect a real model on"
        " the Providers page."
    ),
    "signature": "\n*Written by the demo model from a script.*",
    "weather": "First, I check the weather in {}.",
    "task": "Look at the weather in {} and plan a day out",
    "plan": (
        "# A day out in {}\n\n**Weather:** {}. {}\n\n| Time | Plan |\n|---|---|\n"
        "| 09:00 | {} |\n| 12:00 | Lunch: a local dish |\n| 14:00 | {} |\n"
        "| 17:30 | A rest in a café |\n\nBring comfortable shoes{}.\n"
    ),
    "dry": "Good for outdoors.|A walk in the largest park|A walk in the old town|",
    "wet": (
        "Rain is likely, so the plan stays indoors.|The art museum|"
        "The museum of natural history| and an umbrella"
    ),
    "facts": "{}, {} to {} °C, {}% chance of rain",
    "compare": "# Days out, compared\n\n**{} has the lowest chance of rain: {}%.**\n",
    "no city": "*The question names no city that the demo model knows.*\n\n",
    "called": "The tool returned:\n\n{}",
    "call": "I am going to call {}.",
    "slow": "Paragraph {}: a long text, written slowly so that you can press Stop.",
}
ZH = {
    "about": (
        "我是演示模型：我只按脚本回答，不会思考。我会做一件事：先用天气工具查询天气，"
        "再写一份出游计划，例如“根据北京的天气情况，制定一个出游计划”。"
        "要回答别的问题，请先连接一个真正的模型。"
    ),
    "signature": "\n*由演示模型按脚本生成。*",
    "weather": "先查{}的天气。",
    "task": "根据{}的天气，制定一个一日出游计划",
    "plan": (
        "# {}一日出游计划\n\n**天气：** {}。{}\n\n| 时间 | 安排 |\n|---|---|\n"
        "| 09:00 | {} |\n| 12:00 | 午餐：当地小吃 |\n| 14:00 | {} |\n"
        "| 17:30 | 找一家咖啡馆休息 |\n\n带上舒适的鞋子{}。\n"
    ),
    "dry": "适合户外。|在最大的公园散步|逛老城区|",
    "wet": "很可能下雨，主要安排在室内。|参观美术馆|参观自然博物馆|和雨伞",
    "facts": "{}，气温 {}~{} °C，降雨概率 {}%",
    "compare": "# 出游比较\n\n**{}降雨概率最低：{}%。**\n",
    "no city": "*问题里没有演示模型认识的城市。*\n\n",
    "called": "工具返回：\n\n{}",
    "call": "我要调用 {}。",
    "slow": "第 {} 段：这是一篇写得很慢的长文，好让你试试“停止”按钮。",
}


class ScriptedReply(NamedTuple):
    """Text, and the arguments of parallel calls of one tool."""

    text: str
    tool: str = ""
    calls: tuple[str, ...] = ()


def next_scripted_reply(model: str, request: ModelRequest) -> ScriptedReply:
    """Return the reply of `model`, in the format that the prompt asks for."""
    messages = request.messages
    if request.tools or any(one.role == "tool" for one in messages):
        asked = max((i for i, m in enumerate(messages) if m.role == "user"), default=-1)
        question = messages[asked].text if asked >= 0 else ""
        seen = [one.text for one in messages[asked + 1 :] if one.role == "tool"]
        return _choose_reply(model, question, seen, request.tools)
    prompt = parse_text_prompt(messages)
    reply = _choose_reply(
        model, prompt.question, list(prompt.observations), prompt.tools
    )
    if not reply.calls:
        return ScriptedReply(format_demo_answer(prompt.text_format, reply.text))
    # Text formats have one call per reply.
    return ScriptedReply(
        format_demo_action(prompt.text_format, reply.text, reply.tool, reply.calls[0])
    )


def _choose_reply(
    model: str, question: str, seen: list[str], tools: tuple[ToolSpec, ...]
) -> ScriptedReply:
    words = ZH if re.search(r"[\u4e00-\u9fff]", question) else EN
    if model == "demo-slow":
        return ScriptedReply("\n\n".join(map(words["slow"].format, range(1, 81))))
    weather = next((one for one in tools if "weather" in one.name.lower()), None)
    planner = next((one for one in tools if "planner" in one.name.lower()), None)
    tool = weather or planner
    cities = _find_cities(question, words)
    if not (cities or TRIP_WORDS.search(question)) or not (tool or seen):
        return ScriptedReply(words["about"])
    places = cities or [c[words is ZH] for c in CITIES.items()][: 1 if weather else 2]
    if seen and planner and not weather:
        return ScriptedReply(_compare_plans(words, places, seen))
    if seen:
        note = "" if cities else words["no city"]
        return ScriptedReply(note + _write_plan(words, places[-1], seen[-1]))
    assert tool is not None  # for the type checker: nothing was seen
    if tool is weather:
        text, tasks = words["weather"].format(places[-1]), places[-1:]
    else:
        tasks = [words["task"].format(place) for place in places[:MAX_CITIES]]
        text = words["call"].format(tool.name)
    calls = tuple(_build_arguments(tool, task) for task in tasks)
    return ScriptedReply(text, tool.name, calls)


def _find_cities(question: str, words: dict[str, str]) -> list[str]:
    """Return the known cities in `question`, in its order."""
    found = {
        max(question.lower().find(en.lower()), question.find(zh)): (en, zh)
        for en, zh in CITIES.items()
    }
    return [found[at][words is ZH] for at in sorted(found) if at >= 0]


def _write_plan(words: dict[str, str], place: str, observation: str) -> str:
    """Plan a day with the numbers of `weather_sample`; quote any other observation.

    If a person changed the arguments, a notice precedes the result, and the city is
    that of the result.
    """
    try:
        report = _find_json_line(observation)
        place, day = report.get("city") or place, report["days"][0]
        rain = day["rain_percent"]
        facts = (day["conditions"], day["low_c"], day["high_c"], rain)
        first, *stops = words["wet" if rain >= 50 else "dry"].split("|")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return words["called"].format(observation)
    weather = words["facts"].format(*facts)
    return words["plan"].format(place, weather, first, *stops) + words["signature"]


def _find_json_line(observation: str) -> Any:
    """Return the JSON of the last line that begins with a brace."""
    lines = [line for line in observation.splitlines() if line.startswith("{")]
    return json.loads(lines[-1])


def _compare_plans(words: dict[str, str], places: list[str], plans: list[str]) -> str:
    title = re.escape(words["plan"].partition("\n")[0]).replace(r"\{\}", "(.+)")
    rains = []
    for place, plan in zip(places, plans, strict=False):
        chance, named = re.search(r"(\d+)%", plan), re.search(f"(?m)^{title}$", plan)
        if chance is not None:
            rains.append((int(chance[1]), named[1] if named else place))
    rain, place = min(rains, default=("?", places[0]))
    inner = [re.sub(r"^#", "##", plan, flags=re.MULTILINE) for plan in plans]
    return "\n".join([words["compare"].format(place, rain), *inner])


def _build_arguments(tool: ToolSpec, text: str) -> str:
    """Return arguments with `text` for each required value, or for the first one.

    Text prompts have no schemas; there a weather tool is expected to take `city`.
    """
    schema = tool.args_schema or {}
    usual = "city" if "weather" in tool.name.lower() else "input"
    names = schema.get("required") or list(schema.get("properties", [usual]))[:1]
    return json.dumps(dict.fromkeys(names, text), ensure_ascii=False)
