"""An agent in the middle of its making: published twice, changed since, tested."""

from datetime import timedelta
from decimal import Decimal

from django.contrib.auth.models import User
from django.utils import timezone

from runs.models import Agent, Conversation
from runs.services.agents.publish import publish_agent
from runs.services.agents.save import ToolAssignment, save_agent
from tests.make import make_call, make_run, make_step

INSTRUCTIONS = """\
You plan a day out in {city} for {people} people.

1. Look at the weather first. Never guess it.
2. Check opening hours before you name a place.
3. Answer in the language of the question, as a table with times.

# 用户用中文提问时,用中文回答"""

ANSWER = """\
周六晴,−2 到 6 °C;周日有雪,所以推荐**周六**。

| 时间 | 安排 | 交通 |
|---|---|---|
| 09:30 | 颐和园:长廊、佛香阁 | 地铁 4 号线 |
| 12:30 | 午饭:听鹂馆 | 步行 6 分钟 |
| 14:00 | 圆明园:西洋楼遗址 | 步行 14 分钟 |"""


def built(owner: User, agent: Agent) -> None:
    """Give `agent` instructions, versions with notes, and a test chat."""
    policies = {"weather-sample": "allow", "book_table": "ask"}
    uses = [
        ToolAssignment(use.tool_id, policies.get(use.tool.name, "default"))
        for use in agent.uses.select_related("tool")
        if use.tool is not None
    ]
    save_agent(
        agent, uses=uses, instructions=INSTRUCTIONS.replace("2. Check", "2. See")
    )
    publish_agent(agent, by=owner, note="Looks at the weather first")
    agent.executor = {**agent.executor, "max_iterations": 12}
    save_agent(agent, uses=uses, instructions=INSTRUCTIONS)
    chat = Conversation.objects.create(owner=owner, agent=agent, is_test=True)
    run = make_run(
        owner,
        agent=agent,
        status="succeeded",
        is_test=True,
        conversation=chat,
        inputs={
            "input": "根据北京的天气情况,制定一个出游计划",
            "city": "北京",
            "people": "2",
        },
        output=ANSWER,
        cost=Decimal("0.0149"),
        title="根据北京的天气情况,制定一个出游计划",
        started_at=timezone.now() - timedelta(seconds=31),
    )
    call = make_call(run)
    for tool, given, message in (
        ("weather-sample", {"city": "北京"}, "Saturday: sunny, -2 to 6 °C"),
        ("search_places", {"near": "颐和园", "kind": "park"}, "12 places"),
    ):
        make_step(run, call=call, tool=tool, tool_input=given, observation=message)
    make_call(run)
