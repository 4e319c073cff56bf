"""What the demo model writes about a day out, from the weather it was told."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

Language = Literal["zh", "en"]


@dataclass(frozen=True)
class City:
    """A city the demo knows, in Chinese and English."""

    zh: str
    en: str
    outdoors_zh: tuple[str, str]
    outdoors_en: tuple[str, str]
    indoors_zh: tuple[str, str]
    indoors_en: tuple[str, str]
    food_zh: str
    food_en: str


BEIJING = City(
    "北京",
    "Beijing",
    ("颐和园，沿昆明湖走一圈", "景山公园，登高看故宫全景"),
    ("the Summer Palace, once around the lake", "Jingshan Park, for the view"),
    ("中国国家博物馆", "首都博物馆"),
    ("the National Museum of China", "the Capital Museum"),
    "胡同里吃一碗炸酱面",
    "a bowl of zhajiang noodles in a hutong",
)
CITIES = (
    BEIJING,
    City(
        "上海",
        "Shanghai",
        ("外滩，看黄浦江两岸", "世纪公园"),
        ("the Bund and the river", "Century Park"),
        ("上海博物馆", "上海科技馆"),
        ("the Shanghai Museum", "the Science and Technology Museum"),
        "一笼小笼包",
        "a basket of xiaolongbao",
    ),
    City(
        "杭州",
        "Hangzhou",
        ("西湖苏堤", "灵隐寺旁的茶山"),
        ("the Su causeway on West Lake", "the tea hills near Lingyin"),
        ("浙江省博物馆", "中国丝绸博物馆"),
        ("the Zhejiang Museum", "the Silk Museum"),
        "片儿川和龙井茶",
        "noodles and Longjing tea",
    ),
    City(
        "成都",
        "Chengdu",
        ("人民公园，喝一杯盖碗茶", "大熊猫繁育研究基地"),
        ("People's Park and its tea house", "the panda base"),
        ("成都博物馆", "金沙遗址博物馆"),
        ("the Chengdu Museum", "the Jinsha Site Museum"),
        "一碗担担面",
        "a bowl of dandan noodles",
    ),
    City(
        "西安",
        "Xi'an",
        ("城墙骑行", "大雁塔广场"),
        ("a ride on the city wall", "the square at the Big Wild Goose Pagoda"),
        ("陕西历史博物馆", "碑林博物馆"),
        ("the Shaanxi History Museum", "the Forest of Steles"),
        "一碗羊肉泡馍",
        "a bowl of yangrou paomo",
    ),
    City(
        "广州",
        "Guangzhou",
        ("越秀公园", "沙面岛老建筑"),
        ("Yuexiu Park", "the old houses of Shamian Island"),
        ("广东省博物馆", "陈家祠"),
        ("the Guangdong Museum", "the Chen Clan Hall"),
        "一顿早茶点心",
        "dim sum",
    ),
    City(
        "伦敦",
        "London",
        ("海德公园", "泰晤士河南岸步道"),
        ("Hyde Park", "the South Bank of the Thames"),
        ("大英博物馆", "自然史博物馆"),
        ("the British Museum", "the Natural History Museum"),
        "一份炸鱼薯条",
        "fish and chips",
    ),
    City(
        "巴黎",
        "Paris",
        ("卢森堡公园", "塞纳河沿岸"),
        ("the Luxembourg Garden", "the banks of the Seine"),
        ("卢浮宫", "奥赛博物馆"),
        ("the Louvre", "the Musée d'Orsay"),
        "一块法式咸派",
        "a slice of quiche",
    ),
    City(
        "柏林",
        "Berlin",
        ("蒂尔加滕公园", "滕珀尔霍夫旧机场"),
        ("the Tiergarten", "the old Tempelhof airfield"),
        ("博物馆岛", "德国科技博物馆"),
        ("the Museum Island", "the Museum of Technology"),
        "一份咖喱香肠",
        "a currywurst",
    ),
    City(
        "东京",
        "Tokyo",
        ("上野公园", "明治神宫的林道"),
        ("Ueno Park", "the forest path of Meiji Shrine"),
        ("东京国立博物馆", "国立科学博物馆"),
        ("the Tokyo National Museum", "the Museum of Nature and Science"),
        "一碗荞麦面",
        "a bowl of soba",
    ),
    City(
        "纽约",
        "New York",
        ("中央公园", "高线公园"),
        ("Central Park", "the High Line"),
        ("大都会艺术博物馆", "自然历史博物馆"),
        ("the Metropolitan Museum", "the Museum of Natural History"),
        "一个百吉饼",
        "a bagel",
    ),
    City(
        "奥斯陆",
        "Oslo",
        ("维格兰雕塑公园", "阿克什胡斯城堡外的海滨"),
        ("the Vigeland Park", "the waterfront below Akershus Fortress"),
        ("蒙克博物馆", "弗拉姆号博物馆"),
        ("the Munch Museum", "the Fram Museum"),
        "一碗鱼汤",
        "a bowl of fish soup",
    ),
    City(
        "雷克雅未克",
        "Reykjavík",
        ("老港口", "特约宁湖"),
        ("the Old Harbour", "the pond Tjörnin"),
        ("冰岛国家博物馆", "珍珠楼"),
        ("the National Museum of Iceland", "the Perlan"),
        "一碗羊肉汤",
        "a bowl of lamb soup",
    ),
)


def city_in(text: str) -> City | None:
    """Return the city that `text` names last, None if it names none we know."""
    low = text.lower()

    def place(city: City) -> int:
        return max(low.rfind(city.en.lower()), text.rfind(city.zh))

    city = max(CITIES, key=place)
    return city if place(city) >= 0 else None


def language_of(text: str) -> Language:
    """Return the language to answer `text` in."""
    return "zh" if re.search(r"[\u4e00-\u9fff]", text) else "en"


@dataclass(frozen=True)
class Weather:
    """What could be read in a weather tool's observation; None is unknown."""

    low: float | None = None
    high: float | None = None
    rain: float | None = None
    """Chance of rain in per cent."""
    wind: str = ""
    sky: str = ""

    @property
    def is_known(self) -> bool:
        """Whether there is at least a temperature."""
        return self.high is not None


def read_weather(observation: str) -> Weather:
    """Return the weather in an observation, which is JSON or a sentence."""
    try:
        value = json.loads(observation)
    except (ValueError, RecursionError):
        value = None
    facts = dict(reversed(list(_facts(value, ""))))
    if facts:
        found = _from_facts(facts)
        if found.is_known:
            return found
    return _from_text(observation)


def _facts(value: Any, name: str, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield the named values in `value`; of a list, those of its first element."""
    if isinstance(value, dict) and depth < 8:
        for key, inner in value.items():
            yield from _facts(inner, f"{name} {key}".lower(), depth + 1)
    elif isinstance(value, list) and value and depth < 8:
        yield from _facts(value[0], name, depth + 1)
    elif isinstance(value, int | float | str) and not isinstance(value, bool):
        yield name, value


def _from_facts(facts: dict[str, Any]) -> Weather:
    def number(*words: str, but: str = "$^") -> float | None:
        for key, value in facts.items():
            fits = all(re.search(word, key) for word in words)
            if fits and not re.search(but, key) and isinstance(value, int | float):
                return float(value)
        return None

    other = "rain|precip|wind|humid|feel"
    high = number("max|high", but=other)
    if high is None:
        high = number("temp", but=other + "|min|low")
    wind = number("wind", but="dir|deg")
    sky = (v for k, v in facts.items() if re.search("condition|sky|weather|summary", k))
    words = [one for one in sky if isinstance(one, str)]
    return Weather(
        low=number("min|low", but=other),
        high=high,
        rain=number("rain|precip", but=" mm|_mm|sum|amount"),
        wind="" if wind is None else f"{wind:g} km/h",
        sky=words[0] if words else "",
    )


def _from_text(text: str) -> Weather:
    degrees = r"(-?\d+(?:\.\d+)?)"
    pair = re.search(
        rf"{degrees}\s*(?:°\s*C?|℃)?\s*(?:-|–|~|to|至|到)\s*{degrees}\s*(?:°|℃|C\b)",
        text,
    )
    found = pair.groups() if pair else re.findall(rf"{degrees}\s*(?:°|℃)", text)
    temperatures = [float(one) for one in found]
    rain = re.search(r"(\d+(?:\.\d+)?)\s*%", text)
    wind = re.search(r"\d+(?:\.\d+)?\s*(?:km/h|m/s|公里/小时)", text)
    return Weather(
        low=min(temperatures, default=None),
        high=max(temperatures, default=None),
        rain=float(rain[1]) if rain else None,
        wind=wind[0] if wind else "",
    )


def plan(city: City, observation: str, language: Language) -> str:
    """Return a Markdown plan for a day in `city` that uses the observed numbers."""
    weather = read_weather(observation)
    if language == "zh":
        return _plan_zh(city, weather, observation)
    return _plan_en(city, weather, observation)


def _is_wet(weather: Weather) -> bool:
    return weather.rain is not None and weather.rain >= 50


def _range(weather: Weather, joint: str) -> str:
    if weather.low is None or weather.low == weather.high:
        return f"{weather.high:g} °C"
    return f"{weather.low:g}{joint}{weather.high:g} °C"


def _plan_zh(city: City, weather: Weather, observation: str) -> str:
    if not weather.is_known:
        return (
            f"# {city.zh}一日出游计划\n\n"
            f"没有读到{city.zh}的天气数据，工具的回答是：\n\n"
            f"> {_quote(observation)}\n\n天气不明时，室内更稳妥："
            f"上午去{city.indoors_zh[0]}，下午去{city.indoors_zh[1]}。\n"
        )
    facts = [f"气温 {_range(weather, '~')}"]
    if weather.sky:
        facts.insert(0, weather.sky)
    if weather.rain is not None:
        facts.append(f"降雨概率 {weather.rain:g}%")
    if weather.wind:
        facts.append(f"风速 {weather.wind}")
    wet, high = _is_wet(weather), weather.high or 0.0
    first, second = city.indoors_zh if wet else city.outdoors_zh
    why = "下雨的可能性大，主要安排室内" if wet else "适合户外，主要安排在室外"
    lines = [
        f"# {city.zh}一日出游计划",
        "",
        f"**天气：** {'，'.join(facts)}。{why}。",
        "",
        "| 时间 | 安排 |",
        "|---|---|",
        f"| 09:00 | {first} |",
        f"| 12:00 | 午餐：{city.food_zh} |",
        f"| 14:00 | {second if wet or high < 30 else city.indoors_zh[0]} |",
        "| 17:30 | 找一家茶馆或咖啡馆休息 |",
        "",
        "**带上：**",
        "",
        *_bring_zh(weather),
    ]
    return "\n".join(lines) + "\n"


def _bring_zh(weather: Weather) -> list[str]:
    high, low = weather.high or 0.0, weather.low
    things = []
    if weather.rain is not None and weather.rain >= 30:
        things.append(f"- 雨伞（降雨概率 {weather.rain:g}%）")
    if high >= 26:
        things.append(f"- 防晒用品和水（最高 {high:g} °C）")
    if low is not None and low < 12:
        things.append(f"- 外套（最低 {low:g} °C）")
    if low is not None and high - low >= 8:
        things.append(f"- 方便穿脱的衣服（温差 {high - low:g} °C）")
    return [*things, "- 舒适的鞋子"]


def _plan_en(city: City, weather: Weather, observation: str) -> str:
    if not weather.is_known:
        return (
            f"# A day out in {city.en}\n\nThere was no weather to read; the tool said:"
            f"\n\n> {_quote(observation)}\n\nWithout a forecast, indoors is safer: "
            f"{city.indoors_en[0]} in the morning, {city.indoors_en[1]} after lunch.\n"
        )
    facts = [_range(weather, " to ")]
    if weather.sky:
        facts.insert(0, weather.sky)
    if weather.rain is not None:
        facts.append(f"{weather.rain:g}% chance of rain")
    if weather.wind:
        facts.append(f"wind {weather.wind}")
    wet, high = _is_wet(weather), weather.high or 0.0
    first, second = city.indoors_en if wet else city.outdoors_en
    why = "Rain is likely, so the plan stays indoors." if wet else "Good for outdoors."
    lines = [
        f"# A day out in {city.en}",
        "",
        f"**Weather:** {', '.join(facts)}. {why}",
        "",
        "| Time | Plan |",
        "|---|---|",
        f"| 09:00 | {first[0].upper()}{first[1:]} |",
        f"| 12:00 | Lunch: {city.food_en} |",
        f"| 14:00 | {_after_lunch(city, second, wet, high)} |",
        "| 17:30 | A rest in a tea house or café |",
        "",
        "**Bring:**",
        "",
        *_bring_en(weather),
    ]
    return "\n".join(lines) + "\n"


def _after_lunch(city: City, second: str, wet: bool, high: float) -> str:
    place = second if wet or high < 30 else city.indoors_en[0]
    return f"{place[0].upper()}{place[1:]}"


def _bring_en(weather: Weather) -> list[str]:
    high, low = weather.high or 0.0, weather.low
    things = []
    if weather.rain is not None and weather.rain >= 30:
        things.append(f"- an umbrella ({weather.rain:g}% chance of rain)")
    if high >= 26:
        things.append(f"- sun cream and water (up to {high:g} °C)")
    if low is not None and low < 12:
        things.append(f"- a coat (down to {low:g} °C)")
    if low is not None and high - low >= 8:
        things.append(f"- layers ({high - low:g} °C between morning and afternoon)")
    return [*things, "- comfortable shoes"]


def _quote(text: str) -> str:
    return " ".join(text.split())[:300]
