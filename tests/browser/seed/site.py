"""A lived-in site to look at: run as `python -m tests.browser.seed.site`."""

import logging
import os
import random
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings")
django.setup()

from django.contrib.auth.models import User  # noqa: E402  # after the set-up
from django.core.management.color import no_style  # noqa: E402
from django.db import connection  # noqa: E402
from django.utils import timezone  # noqa: E402

from runs.engine.types import ExecutorOptions, ModelSettings  # noqa: E402
from runs.models import (  # noqa: E402
    Agent,
    AgentStep,
    ApiToken,
    Conversation,
    ModelCall,
    ProviderModel,
    QueueSample,
    Run,
    RunShare,
    RunTag,
    SavedFilter,
    Worker,
)
from runs.services.accounts.tokens import hash_token  # noqa: E402
from runs.services.search.index_runs import index_runs  # noqa: E402
from runs.store.specs import load_spec  # noqa: E402
from tests.browser.seed.agent import built  # noqa: E402
from tests.browser.seed.edges import edges  # noqa: E402
from tests.browser.seed.evaluation import evaluation  # noqa: E402
from tests.browser.seed.runs import WORKED, states  # noqa: E402
from tests.browser.seed.schedules import schedules  # noqa: E402
from tests.browser.seed.week import QUESTIONS, week, week_before  # noqa: E402
from tests.make import (  # noqa: E402
    make_agent,
    make_call,
    make_decision,
    make_prompt,
    make_provider,
    make_run,
    make_spec,
    make_step,
    make_tool,
    make_user,
    make_version,
    make_worker,
)
from tools.definition.save import save_tool  # noqa: E402
from tools.models import Tool, ToolUsage  # noqa: E402
from tools.spec import ToolSpec  # noqa: E402

REACT = """\
Answer as well as you can. You have these tools:

{tools}

Thought: think
Action: one of {tool_names}
Action Input: its input

Question: {input}
{agent_scratchpad}"""


def main() -> None:
    """Make people, definitions and a week of runs."""
    random.seed(7)
    admin = make_user(
        "admin", is_superuser=True, first_name="Lin", last_name="Wei", password="admin"
    )
    mara = make_user("mara", first_name="Mara", last_name="Oduya")
    agents = definitions(admin)
    *published, _ = agents
    for agent in published:
        make_version(agent, by=admin)
    make_version(agents[0], by=admin)
    week_before(admin, mara, agents[:3])
    week(admin, mara, agents[:3])
    today(admin, mara, agents[:3])
    states(admin, published)
    forked_pair(admin, agents[0])
    built(admin, agents[0])
    edges(admin, agents)
    schedules(admin, mara, agents)
    later = timezone.now() + timedelta(hours=1)  # pictures take a while
    since = timezone.now() - WORKED
    make_worker(name="w1", started_at=since, last_heartbeat=later, abandoned_calls=1)
    ended = timezone.now() - timedelta(minutes=50)
    make_worker(name="w0", started_at=since, last_heartbeat=ended, stopped_at=ended)
    Worker.objects.update(host="node-a", version="0.1.0")
    ApiToken.objects.create(user=admin, name="helpdesk", digest="a" * 64)
    chat = Conversation.objects.create(
        pk=900, owner=admin, agent=agents[0], title="北京周末出游"
    )
    now, given = timezone.now(), {"city": "北京", "people": "2"}
    first = make_run(
        admin,
        agent=agents[0],
        status="succeeded",
        conversation=chat,
        title=QUESTIONS[0],
        inputs={"input": QUESTIONS[0], **given},
        started_at=now - timedelta(seconds=31),
        ended_at=now,
        output="**周六**晴，−2 到 6 °C；周日可能下雪。推荐周六去颐和园。\n\n"
        "| 时间 | 安排 |\n|---|---|\n| 09:30 | 颐和园 |\n| 14:00 | 圆明园 |\n",
    )
    make_step(first, tool="weather-sample", tool_input={"city": "北京"}, elapsed=0.1)
    make_run(
        admin,
        agent=agents[0],
        status="running",
        conversation=chat,
        title="能不能再加一个室内的博物馆？",
        inputs={"input": "能不能再加一个室内的博物馆？", **given},
        lease_until=later,
    )
    all_work(later)
    in_order()
    continue_numbers()
    logging.disable(logging.WARNING)  # no broker is running to start its runs
    evaluation(admin, mara, agents[1])
    for tool in Tool.objects.all():
        if not tool.revisions.exists():
            save_tool(tool, by=admin, note="Made")
        AgentStep.objects.filter(tool=tool.name).update(tool_ref=tool)
    while index_runs():
        pass
    hour = later.replace(minute=0, second=0, microsecond=0) - timedelta(hours=3)
    for tool in Tool.objects.filter(kind="function"):
        tool.last_used_at = hour
        tool.save(update_fields=["last_used_at"])
        for day in range(24):
            ToolUsage.objects.create(
                tool=tool,
                hour=hour - timedelta(days=day),
                calls=random.randint(10, 40),
                failures=random.randint(0, 2) * (day % 5 == 0),
            )
    for n in range(700):
        QueueSample.objects.create(
            minute=later - timedelta(hours=1, minutes=n + 1 + 90 * (n > 400)),
            queued=n % 7,
            running=3,
            wait=max(0.0, 30 - abs(n - 200) / 3),
            workers=2,
        )
    for run in Run.objects.filter(status="failed")[:3]:
        RunTag.objects.create(run=run, name="look again")
    query = "status=failed&since=1d"
    SavedFilter.objects.create(owner=admin, name="Failed today", query=query)
    SavedFilter.objects.create(owner=admin, name="Dear ones", query="sort=cost")


def continue_numbers() -> None:
    """Give the next run a number above those that the seed chose."""
    with connection.cursor() as cursor:
        for statement in connection.ops.sequence_reset_sql(no_style(), [Run]):
            cursor.execute(statement)


def all_work(later: datetime) -> None:
    """Give each run its version and worker, and each worker's count what it has."""
    w1, w2 = (Worker.objects.get(name=name) for name in ("w1", "w2"))
    running = Run.objects.filter(status="running")
    running.filter(worker=None).update(worker=w1)
    Run.objects.filter(worker=None, ended_at__isnull=False).update(worker=w1)
    for agent in Agent.objects.all():
        agent.runs.filter(version=None, is_test=False).update(
            version=agent.versions.first()
        )
    Worker.objects.filter(pk=w2.pk).update(last_heartbeat=later)
    for worker in (w1, w2):
        number = running.filter(worker=worker).count()
        Worker.objects.filter(pk=worker.pk).update(running=number)


def in_order() -> None:
    """Let no run be made after one with a higher number, nor after its own start."""
    least = timezone.now()
    for run in Run.objects.order_by("-pk").only("created_at", "started_at"):
        least = min(least, run.created_at, run.started_at or least)
        Run.objects.filter(pk=run.pk).update(created_at=least)


def definitions(admin: User) -> list[Agent]:
    """Make providers, prompts, tools and agents."""
    demo = make_provider(
        admin, name="demo", kind="demo", base_url="", default_model="demo"
    )
    local = make_provider(
        admin,
        name="local",
        base_url="http://127.0.0.1:11434/v1",
        default_model="qwen3:32b",
        tested_at=timezone.now() - timedelta(days=2),
    )
    for name in ("qwen3:32b", "llama3.3:70b", "gemma3:27b"):
        ProviderModel.objects.create(
            provider=local,
            name=name,
            functions=name != "gemma3:27b",
            context_tokens=32_768,
            input_price=Decimal("0.1"),
            output_price=Decimal("0.3"),
            seen_at=local.tested_at,
        )
    ProviderModel.objects.create(provider=demo, name="demo", functions=True)
    make_prompt(admin, name="Plain ReAct", kind="react", template=REACT)
    make_prompt(
        admin,
        name="Day planner",
        messages=[
            {"role": "system", "template": "You plan a day out in {city}."},
            {"role": "user", "template": "{input}"},
        ],
    )
    tools = tuple(
        make_tool(
            admin,
            name=name,
            description=words,
            effect=effect,
            approval=approval,
            config={"function": "tests.browser.seed.functions:answer"},
        )
        for name, words, effect, approval in (
            ("weather-sample", "Sample forecast for a city and a day", "read", "never"),
            ("search_places", "Places near a point, by kind", "read", "never"),
            ("calculator", "Arithmetic", "read", "never"),
            ("book_table", "Book a table at a restaurant", "side_effect", "always"),
            (
                *("refund_payment", "Send money back to a customer"),
                *("side_effect", "side_effects"),
            ),
            ("opening_hours", "Opening hours and tickets", "read", "never"),
            ("route_time", "Time from one place to another", "read", "never"),
            ("fetch_page", "The text of a web page", "read", "never"),
            ("search_logs", "What the servers wrote of a customer", "read", "never"),
            ("list_payments", "The payments of a customer", "read", "never"),
            ("send_email", "Write to a customer", "side_effect", "never"),
            ("list_tables", "Tables of a schema", "read", "never"),
            ("describe_table", "Columns of a table", "read", "never"),
            ("run_sql", "A query that only reads", "read", "never"),
            ("look_up", "What a word means", "read", "never"),
        )
    )
    planner = make_agent(
        admin,
        name="travel-planner",
        description="Plans a day out by the weather.",
        provider=demo,
        model="demo",
        tools=(*tools[:4], *tools[5:8]),
        executor={"max_iterations": 15, "loop_guard": {"hint": 3, "stop": 5}},
    )
    triage = make_agent(
        admin,
        name="support-triage",
        description="Reads tickets, finds the cause, proposes an answer.",
        provider=local,
        model="qwen3:32b",
        tools=(tools[2], tools[4], *tools[8:11]),
    )
    plain = {"kind": "react", "provider": local, "model": "llama3.3:70b"}
    analyst = make_agent(
        admin,
        name="data-analyst",
        description="Answers questions about sales from the database.",
        tools=tools[11:14],
        **plain,
    )
    glossary = make_agent(
        admin,
        name="glossary",
        description="Looks words up, many at a time.",
        provider=demo,
        model="demo",
        tools=tools[14:],
        suggested_questions=[
            "What does idempotent mean?",
            "Explain 听鹂馆 in English",
            "Which word is right here: affect or effect?",
        ],
    )
    payouts = make_agent(
        admin,
        name="payouts",
        description="Compares what was paid out with what was owed.",
        tools=tools[11:14],
        **plain,
    )
    return [planner, triage, analyst, glossary, payouts]


PLACES = """\
{"places": [
  {"name": "故宫博物院", "kind": "palace", "open": true},
  {"name": "颐和园", "kind": "park", "open": true},
  {"name": "圆明园", "kind": "park", "open": null}
]}"""
TRIP = """\
**周六一日游：颐和园和圆明园。** 周六（11 月 28 日）晴，−2 到 6 °C，适合户外。

| 时间 | 安排 | 交通 |
| --- | --- | --- |
| 09:30 | 颐和园：长廊、佛香阁 | 地铁 4 号线 |
| 14:00 | 圆明园：西洋楼遗址 | 步行 6 分钟 |

两个人合计约 210 元。"""


def forked_pair(admin: User, planner: Agent) -> None:
    """Make run 4790, which stopped, and its fork 4806, which answered."""
    now = timezone.now()
    version = planner.versions.first()
    spec = make_spec(
        name=planner.name,
        executor=ExecutorOptions(max_iterations=3),
        model=ModelSettings(
            model="demo-planner", provider="demo", provider_id=planner.provider_id
        ),
        tools=tuple(
            ToolSpec(name=name, description=words, effect=effect, asks=asks)
            for name, words, effect, asks in (
                ("weather-sample", "Sample forecast for a city and a day", "read", 0),
                ("search_places", "Places near a point, by kind", "read", 0),
                ("opening_hours", "Opening hours and tickets", "read", 0),
                ("calculator", "Arithmetic", "read", 0),
                ("book_table", "Book a table at a restaurant", "side_effect", 1),
            )
        ),
    )
    parent = make_run(
        admin,
        pk=4790,
        agent=planner,
        version=version,
        spec=spec,
        status="limit_reached",
        title=QUESTIONS[0],
        inputs={"input": QUESTIONS[0]},
        output="Agent stopped due to iteration limit or time limit.",
        started_at=now - timedelta(minutes=190),
        ended_at=now - timedelta(minutes=190) + timedelta(seconds=13.4),
    )
    fork = make_run(
        admin,
        pk=4806,
        agent=planner,
        version=version,
        spec=make_spec(
            load_spec(spec).model_copy(
                update={"executor": ExecutorOptions(max_iterations=8)}
            )
        ),
        status="succeeded",
        title=QUESTIONS[0],
        inputs={"input": QUESTIONS[0]},
        output=TRIP,
        forked_from=parent,
        fork_index=2,
        fork_row=4,
        fork_edits=["limits", "observation"],
        started_at=now - timedelta(minutes=170),
        ended_at=now - timedelta(minutes=170) + timedelta(seconds=17),
    )
    mended = PLACES.replace("null", "true").replace(
        '  {"name": "故宫博物院", "kind": "palace", "open": true},\n', ""
    )
    for run, places, copied in ((parent, PLACES, False), (fork, mended, True)):
        since = run.started_at
        looked = made_call(
            run, "先查北京的天气。", since, 0, "weather-sample", is_copied=copied
        )
        made_step(run, looked, "weather-sample", {"city": "北京"}, "晴, −2 to 6 °C", 2)
        found = made_call(
            run, "周六晴。现在找地方。", since, 4, "search_places", is_copied=copied
        )
        made_step(run, found, "search_places", {"near": "北京"}, places, 6)
    AgentStep.objects.filter(run=fork, index=1).update(is_edited=True)
    Run.objects.filter(pk=fork.pk).update(
        model_calls=0, input_tokens=0, output_tokens=0, cost=0
    )
    for run in (parent, fork):
        Run.objects.filter(pk=run.pk).update(created_at=run.started_at)
        run.created_at = run.started_at
    RunShare.objects.create(
        run=fork,
        by=admin,
        digest=hash_token("a-link-to-look-at"),
        expires_at=now + timedelta(days=6),
        open_count=3,
        seen_at=now,
    )
    fork.refresh_from_db()
    since = parent.started_at
    tried = made_call(parent, "检查故宫的开放时间。", since, 9, "opening_hours")
    made_step(parent, tried, "opening_hours", {"place": "故宫"}, "sold out", 12)
    since = fork.started_at
    tried = made_call(fork, "检查圆明园的开放时间。", since, 1, "opening_hours")
    made_step(fork, tried, "opening_hours", {"place": "圆明园"}, "07:00–17:30", 4)
    costs = made_call(fork, "算出两个人的费用。", since, 9, "calculator")
    made_step(fork, costs, "calculator", {"expression": "2 * 105"}, "210", 13)
    made_call(fork, TRIP, since, 15)


def made_call(
    run: Run,
    text: str,
    since: Any,
    second: float,
    tool: str = "",
    *,
    is_copied: bool = False,
) -> ModelCall:
    """Make a model call of 2 s that began `second` s after `since`."""
    cost = Decimal("0.0021")
    run.cost += cost
    asked = {"id": f"c{run.next_number}", "name": tool, "arguments": "{}"}
    return make_call(
        run,
        reply={"text": text, "tool_calls": [asked] if tool else []},
        started_at=since + timedelta(seconds=second),
        first_token=0.6,
        elapsed=2.0,
        input_tokens=1800 + 700 * run.next_number,
        output_tokens=len(text) * 2,
        cost=0 if is_copied else cost,
        is_copied=is_copied,
    )


def made_step(
    run: Run,
    call: ModelCall,
    tool: str,
    tool_input: dict[str, str],
    message: str,
    second: float,
) -> None:
    """Make a call of a tool that took 1.4 s."""
    began = call.started_at + timedelta(seconds=2)
    make_step(
        run,
        call=call,
        tool=tool,
        tool_input=tool_input,
        observation=message,
        started_at=began,
        ended_at=began + timedelta(seconds=second / 5),
        duration=second / 5,
        elapsed=second / 5,
        is_copied=call.is_copied,
    )


def today(admin: User, mara: User, agents: list[Agent]) -> None:
    """Make what is going on now."""
    now = timezone.now()
    planner, triage, analyst = agents
    for pk, agent, question, tool, seconds in (
        (9020, analyst, QUESTIONS[3], "run_sql", 190),
        (9021, triage, QUESTIONS[2], "search_logs", 100),
        (9031, planner, QUESTIONS[0], "", 48),
        (9032, planner, QUESTIONS[1], "search_places", 14),
    ):
        run = make_run(
            admin,
            pk=pk,
            agent=agent,
            status="running",
            title=question,
            started_at=now - timedelta(seconds=seconds),
            queued_at=now - timedelta(seconds=seconds),
            lease_until=now + timedelta(hours=1),
        )
        run.created_at = run.started_at
        run.save()
        if tool:
            asked = {"text": "I look it up.", "tool_calls": [{"name": tool}]}
            make_call(run, reply=asked)
            make_step(run, tool=tool, status="started")
    question = "Ticket 88213: the invoice of November was paid twice"
    asking = make_run(
        mara,
        pk=9034,
        agent=triage,
        status="awaiting_approval",
        title=question,
        inputs={"input": question},
    )
    words = {"text": "Looks at the payments, then gives the second one back"}
    asks = words | {"tool_calls": [{"name": "list_payments"}]}
    call = make_call(asking, reply=asks)
    asked = {"payment_id": "pay_9f32", "amount": 49.0, "currency": "EUR"}
    make_step(
        asking,
        tool="list_payments",
        tool_input={"customer": "c_118"},
        observation="3 payments, two of 49.00 EUR",
        started_at=call.started_at + timedelta(seconds=0.5),
    )
    step = make_step(
        asking,
        tool="refund_payment",
        tool_input=asked,
        status="awaiting_approval",
        effect="side_effect",
    )
    make_decision(
        step,
        shown={"tool": "refund_payment", "tool_input": asked},
        expires_at=now + timedelta(hours=3, minutes=47),
    )
    question = "Ticket 88201: send a copy of the invoice"
    unsure = make_run(
        admin, pk=9035, agent=triage, status="awaiting_decision", title=question
    )
    step = make_step(
        unsure,
        tool="send_email",
        tool_input={"to": "k.meier@example.com", "subject": "Your invoice"},
        status="unknown",
        effect="side_effect",
    )
    make_decision(step, question="outcome")
    make_run(admin, pk=9036, agent=analyst, title=QUESTIONS[4])
    make_run(
        admin,
        pk=9037,
        agent=planner,
        status="waiting",
        title=QUESTIONS[5],
        available_at=now + timedelta(minutes=2),
    )


if __name__ == "__main__":
    main()
