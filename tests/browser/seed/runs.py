"""Runs in every state, for pictures of the run page; their numbers are fixed."""

import json
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.db.models import F
from django.utils import timezone

from runs.engine.digest import digest_request
from runs.engine.types import Budget, ExecutorOptions, ModelSettings, PromptSpec
from runs.models import Agent, AgentStep, ModelAttempt, ModelCall, Run
from runs.services.runs.rebuild_prompt import rebuild_prompt
from runs.services.runs.start import build_run_title
from tests.bench.loads.big_run import make_big_run
from tests.make import make_decision, make_run, make_spec, make_worker
from tools.spec import ToolSpec

DONE, FAILED, APPROVAL, BIG, CANCELED, LOST, LIVE = range(9002, 9009)
RUNNING, BUSY = 9030, 9033
"""As in a true list, a greater number began later."""
OPTIONS = ExecutorOptions(
    max_iterations=15, max_execution_time=300, budget=Budget(tokens=60_000, cost=0.25)
)
PROMPT = PromptSpec.model_validate(
    {
        "messages": [
            {
                "role": "system",
                "template": "You plan a day out. Look things up, never guess.",
            },
            {"role": "user", "template": "{input}"},
        ]
    }
)
OPEN = ("started", "planned", "awaiting_approval", "unknown")
CHANGING = ("refund_payment", "send_email")
QUESTION = "根据北京的天气情况，制定一个出游计划"
ANSWER = """\
# 周六一日游：颐和园和圆明园

周六（11 月 28 日）晴，−2 到 6 °C，适合户外；周日可能下阵雪，所以都放在周六。

| 时间 | 安排 | 交通 |
|---|---|---|
| 08:30 | 从天安门出发 | 地铁 4 号线，52 分钟 |
| 09:30 | **颐和园**：东宫门、长廊、佛香阁 | 17:00 停止入园 |
| 12:30 | 午饭：听鹂馆，人均 60 元 | 园内步行 6 分钟 |
| 14:00 | **圆明园**：西洋楼遗址 | 步行 14 分钟 |

两个人合计约 **210 元**（门票 120 元，午饭另计）。请带手套和保温杯，湖边风大。
"""


class Tool(NamedTuple):
    """One call of a round, and what came of it."""

    name: str
    input: dict[str, Any]
    observation: str
    seconds: float
    status: str = "succeeded"
    attempts: int = 1


class Round(NamedTuple):
    """A reply, how long it took, and its calls."""

    text: str
    seconds: float
    tokens: int
    tools: tuple[Tool, ...] = ()


READS_THE_SCHEMA = Round(
    "Reads the schema before it asks anything",
    3.3,
    2210,
    (
        Tool("list_tables", {"schema": "sales"}, "14 tables", 0.3),
        Tool("describe_table", {"table": "orders"}, "31 columns", 0.4),
    ),
)
PLAN = (
    Round(
        "Looks up the weather and what there is to see",
        2.5,
        1184,
        (
            Tool(
                "weather-sample",
                {"city": "北京", "day": "28 Nov"},
                "−2 to 6 °C, sunny",
                0.6,
            ),
            Tool(
                "weather-sample",
                {"city": "北京", "day": "29 Nov"},
                "snow showers, 60 %",
                0.5,
            ),
            Tool(
                "search_places", {"city": "北京", "kind": "outdoors"}, "12 places", 1.8
            ),
        ),
    ),
    Round(
        "Chooses Saturday; checks opening hours",
        4.5,
        3310,
        (
            Tool(
                "opening_hours", {"place": "颐和园"}, "06:30–18:00, tickets 30 元", 1.1
            ),
            Tool("opening_hours", {"place": "故宫博物院"}, "sold out on 28 Nov", 0.7),
            Tool(
                "fetch_page",
                {"url": "https://www.dpm.org.cn/ticket"},
                "The server answered 503 to all 3 attempts.",
                7.3,
                "failed",
                3,
            ),
        ),
    ),
    Round(
        "Hands lunch to the restaurant search",
        2.8,
        4102,
        (Tool("search_places", {"near": "颐和园", "kind": "lunch"}, "3 places", 14.4),),
    ),
    Round(
        "Asks for travel times and adds up the cost",
        2.7,
        5216,
        (
            Tool(
                "route_time", {"from": "天安门", "to": "颐和园"}, "52 min, metro 4", 0.9
            ),
            Tool("route_time", {"from": "颐和园", "to": "圆明园"}, "14 min, walk", 0.8),
            Tool("calculator", {"expression": "2*60 + 30*2 + 10*3"}, "210", 0.004),
        ),
    ),
)


WORKED = timedelta(minutes=401)
"""For how long workers have run; before it there was none for a while."""


def states(admin: User, agents: list[Agent]) -> None:
    """Make one run of each state the run page can be in."""
    planner, triage, analyst, glossary = agents
    since = timezone.now() - WORKED
    worker = make_worker(name="w2", started_at=since)
    gone = timezone.now() - timedelta(minutes=3)
    dead = make_worker(name="w3", started_at=since, last_heartbeat=gone)
    done(admin, planner, worker=worker)
    running(admin, planner, worker=worker)
    failed(admin, analyst, worker=worker)
    approval(admin, triage)
    canceled(admin, planner, worker=worker)
    lost(admin, planner, worker=dead)
    big = {"agent": glossary, "version": glossary.versions.first()}
    make_big_run(admin, steps=3_000, pk=BIG, **big)
    later = timezone.now() + timedelta(hours=1)
    live = {"status": "running", "lease_until": later, "worker": worker}
    make_big_run(admin, steps=200, pk=LIVE, **big, **live)
    busy = Round("Looks", 1, 900, (Tool("look_up", {"word": "sun"}, "", 0, "started"),))
    question = {"question": "Look up what the sun is in 40 languages"}
    played(admin, glossary, BUSY, (busy,), **question, **live)
    Run.objects.filter(pk__in=[BIG, LIVE]).update(created_at=F("started_at"))


def number_at(begun: datetime) -> int:
    """Return the even number of a run of the last week, by when it began."""
    return 4700 - 2 * int((timezone.now() - begun) / timedelta(minutes=5))


def spec_row(rounds: tuple[Round, ...], options: ExecutorOptions = OPTIONS) -> Any:
    """Return a spec with the tools that the rounds use."""
    names = sorted({tool.name for one in rounds for tool in one.tools})
    schema = {"type": "object", "properties": {"any": {"type": "string"}}}
    tools = tuple(
        ToolSpec(
            name=name,
            description=f"{name}.",
            args_schema=schema,
            effect="side_effect" if name in CHANGING else "read",
        )
        for name in names
    )
    model = ModelSettings(
        model="qwen3-32b", provider="local", parameters={"temperature": 0.4}
    )
    return make_spec(
        tools=tools, executor=options, model=model, prompt=PROMPT, prices=PRICES
    )


PRICES = {"input": 0.4, "output": 1.6}


def played(
    owner: User, agent: Agent, pk: int, rounds: tuple[Round, ...], **fields: Any
) -> Run:
    """Make a run that went through `rounds`, as a worker would have written it."""
    seconds = sum(
        r.seconds + max([t.seconds for t in r.tools], default=0) for r in rounds
    )
    ago = fields.pop("ago", seconds + 11)
    at = timezone.now() - timedelta(seconds=ago)
    question = fields.pop("question", QUESTION)
    fields.setdefault("version", agent.versions.first())
    run = make_run(
        owner,
        agent=agent,
        pk=pk,
        spec=spec_row(rounds, fields.pop("options", OPTIONS)),
        title=build_run_title({"input": question}),
        **{"inputs": {"input": question}, **fields},
        started_at=at,
        queued_at=at,
    )
    run.created_at = at - timedelta(seconds=0.02)
    for number, one in enumerate(rounds):
        at = play(run, number, one, at)
    if run.is_over:
        run.ended_at = at
    run.save()
    for call in ModelCall.objects.filter(run=run):
        rebuilt = rebuild_prompt(call)
        if rebuilt is not None:
            call.digest = digest_request(rebuilt.request)
            call.save()
    return run


def play(run: Run, number: int, one: Round, at: Any) -> Any:
    """Write one round that begins at `at`; return when it ended."""
    run.seq += 1
    asked = [
        {"id": f"c{number}_{n}", "name": tool.name, "arguments": as_json(tool.input)}
        for n, tool in enumerate(one.tools)
    ]
    cost = Decimal(one.tokens) * Decimal("0.0000005")
    call = ModelCall.objects.create(
        run=run,
        number=number,
        at_index=run.next_index,
        round=number + 1,
        reply={"text": one.text, "tool_calls": asked, "model": "qwen3-32b"},
        settings=run.spec.body["model"],
        model="qwen3-32b",
        digest="0" * 64,
        input_tokens=one.tokens - one.tokens // 12,
        output_tokens=one.tokens // 12,
        cached_tokens=one.tokens // 2,
        cost=cost,
        started_at=at,
        first_token=min(1.2, one.seconds / 3),
        elapsed=one.seconds,
        created_seq=run.seq,
        changed_seq=run.seq,
    )
    start = at + timedelta(seconds=one.seconds)
    for tool in one.tools:
        open_ = tool.status in OPEN
        AgentStep.objects.create(
            run=run,
            index=run.next_index,
            model_call=call,
            round=number + 1,
            tool=tool.name,
            tool_input=tool.input,
            log=one.text,
            call_id=f"c{number}_{run.next_index - call.at_index}",
            effect="side_effect" if tool.name in CHANGING else "read",
            status=tool.status,
            observation="" if open_ else tool.observation,
            attempts=tool.attempts,
            started_at=None if tool.status == "awaiting_approval" else start,
            ended_at=None if open_ else start + timedelta(seconds=tool.seconds),
            duration=None if open_ else tool.seconds,
            elapsed=None if open_ else tool.seconds,
            created_seq=run.seq,
            changed_seq=run.seq,
        )
        run.next_index += 1
    run.next_number, run.rounds, run.model_calls = number + 1, number + 1, number + 1
    run.input_tokens += call.input_tokens
    run.output_tokens += call.output_tokens
    run.cost += cost
    longest = max([tool.seconds for tool in one.tools], default=0)
    return start + timedelta(seconds=longest)


def as_json(value: Any) -> str:
    """Write arguments as a model does."""
    return json.dumps(value, ensure_ascii=False)


def done(admin: User, agent: Agent, **fields: Any) -> None:
    """A run with its answer."""
    rounds = (*PLAN, Round(ANSWER, 24.4, 5950))
    run = played(admin, agent, DONE, rounds, status="succeeded", ago=3900, **fields)
    Run.objects.filter(pk=run.pk).update(output=ANSWER)


def running(admin: User, agent: Agent, **fields: Any) -> None:
    """A run in the middle of its fifth model call."""
    later = timezone.now() + timedelta(hours=1)  # pictures take a while
    played(admin, agent, RUNNING, PLAN, status="running", lease_until=later, **fields)


def lost(admin: User, agent: Agent, **fields: Any) -> None:
    """A run whose worker gives no sign of life."""
    earlier = timezone.now() - timedelta(seconds=10)
    fields |= {"status": "running", "lease_until": earlier, "ago": 240}
    played(admin, agent, LOST, PLAN[:2], **fields)


def failed(admin: User, agent: Agent, **fields: Any) -> None:
    """A run whose last request was too long for the model."""
    rows = "\n".join(
        f"88012{n},7,2026-09-0{n % 9 + 1}T00:03:11Z,118.40,EUR,EMEA,partner"
        for n in range(600)
    )
    sql = "SELECT month, sum(net_amount) FROM orders GROUP BY 1"
    rounds = (
        READS_THE_SCHEMA,
        Round(
            "Asks for net revenue by month",
            6.4,
            5120,
            (Tool("run_sql", {"query": sql}, "No column net_amount.", 0.6, "failed"),),
        ),
        Round(
            "Wants the single orders of 4 partners",
            9.2,
            21_960,
            (Tool("run_sql", {"query": "SELECT * FROM orders"}, rows, 41.0),),
        ),
    )
    run = played(
        admin,
        agent,
        FAILED,
        rounds,
        status="failed",
        ago=3600,
        question="Why did net revenue fall in September? Name the causes.",
        error_code="context_too_long",
        error_message="The request had about 131,204 tokens; the model takes 128,000.",
        source="schedule",
        **fields,
    )
    attempted(run, run.error_code, run.error_message, (4.0, 9.0, None), status=400)


def attempted(
    run: Run,
    code: str,
    message: str,
    waits: tuple[float | None, ...],
    *,
    elapsed: float = 3.1,
    status: int | None = None,
) -> None:
    """Give a run a model call that never got a reply, tried once for each wait."""
    at = run.ended_at or timezone.now()
    for attempt, wait in enumerate(waits, 1):
        ModelAttempt.objects.create(
            run=run,
            number=run.next_number,
            attempt=attempt,
            code=code,
            status=status,
            message=message,
            retry_in=wait,
            started_at=at,
            elapsed=elapsed,
            created_seq=run.seq,
        )
        at += timedelta(seconds=elapsed + (wait or 0))
    Run.objects.filter(pk=run.pk).update(ended_at=at)


def approval(admin: User, agent: Agent) -> None:
    """A run that waits for a yes."""
    asked = {"payment_id": "pay_9f32", "amount": 49.0, "currency": "EUR"}
    rounds = (
        Round(
            "Looks at the payments of the customer",
            2.1,
            1420,
            (Tool("list_payments", {"customer": "c_118"}, "3, two of 49.00 EUR", 0.4),),
        ),
        Round(
            "The invoice was paid twice. I give the second payment back",
            3.4,
            2210,
            (Tool("refund_payment", asked, "", 0, "awaiting_approval", 0),),
        ),
    )
    run = played(
        admin,
        agent,
        APPROVAL,
        rounds,
        status="awaiting_approval",
        ago=3300,
        question="Ticket 88213: the invoice of November was paid twice",
        source="api",
    )
    step = run.steps.get(status="awaiting_approval")
    due = timezone.now() + timedelta(hours=3, minutes=47)
    make_decision(step, expires_at=due, shown={"tool": step.tool, "tool_input": asked})


def canceled(admin: User, agent: Agent, **fields: Any) -> None:
    """A run that a person stopped while the model wrote."""
    run = played(admin, agent, CANCELED, PLAN[:1], status="canceled", ago=600, **fields)
    cut_off(run, by=admin)


def cut_off(run: Run, *, by: User) -> None:
    """Let a person stop a run while the model writes."""
    at = run.ended_at or timezone.now()
    ModelAttempt.objects.create(
        run=run,
        number=run.next_number,
        attempt=1,
        code="canceled",
        message="A person canceled the run during this model call.",
        was_streamed=True,
        started_at=at,
        elapsed=5.2,
        created_seq=run.seq,
    )
    ended = at + timedelta(seconds=5.2)
    asked = ended - timedelta(seconds=0.4)
    Run.objects.filter(pk=run.pk).update(
        ended_at=ended, cancel_requested_at=asked, canceled_by=by
    )
