"""A week of finished runs of three agents, each with the steps its agent would do."""

import random
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from runs.models import Agent, Run
from tests.browser.seed.runs import (
    ANSWER,
    OPTIONS,
    PLAN,
    READS_THE_SCHEMA,
    Round,
    Tool,
    attempted,
    cut_off,
    number_at,
    played,
)

QUESTIONS = [
    "根据北京的天气情况，制定一个出游计划",
    "Find lunch for 2 near 颐和园 on 28 November",
    "Ticket 88219: cannot log in after the password change",
    "Reconcile the payouts of November",
    "Weekly figures for the partners in EMEA",
    "Compare hotel prices for 上海, 3 to 6 December, close to a metro station",
    "Ticket 88190: Rechnung nicht zu finden, bitte auf Deutsch antworten",
    "Which customers churned after the price change?",
    "Plan a rainy Sunday in 成都 with two children",
]
TICKET = (
    Round(
        "Looks at what the server wrote about the customer",
        2.6,
        1480,
        (
            Tool(
                "search_logs",
                {"customer": "c_118", "hours": 24},
                "14 lines: all sessions of c_118 ended, then 3 wrong passwords",
                0.9,
            ),
        ),
    ),
    Round(
        "Finds the cause; writes to the customer",
        3.1,
        2240,
        (
            Tool(
                "send_email",
                {"to": "k.meier@example.com", "subject": "How to sign in again"},
                "sent",
                0.7,
            ),
        ),
    ),
    Round(
        "The change of the password had ended **all sessions**. I have sent the "
        "customer a link to sign in again; nothing else is to be done.",
        2.2,
        2390,
    ),
)
FIGURES = (
    READS_THE_SCHEMA,
    Round(
        "Asks for the sums by region",
        6.4,
        5120,
        (
            Tool(
                "run_sql",
                {"query": "SELECT region, sum(net) FROM sales.orders GROUP BY 1"},
                "EMEA 118,400.00\nAPAC 96,210.50\nAMER 131,087.25",
                1.6,
            ),
        ),
    ),
    Round(
        "| Region | Net |\n|---|---|\n| AMER | 131,087.25 |\n| EMEA | 118,400.00 |\n"
        "| APAC | 96,210.50 |",
        4.8,
        5480,
    ),
)
OUTING = (PLAN[0], PLAN[3], Round(ANSWER, 9.5, 5950))
WORK = {
    "travel-planner": ((0, 1, 5, 8), OUTING),
    "support-triage": ((2, 6), TICKET),
    "data-analyst": ((3, 4, 7), FIGURES),
}
"""What each agent is asked, by the place of the question, and what it then does."""
ENDS = ["succeeded"] * 17 + ["failed", "limit_reached", "canceled"]
FAILURES = (
    ("timeout", "The provider did not answer within 60 s.", 60.0, None),
    ("context_too_long", "The request was longer than the model takes.", 0.8, 400),
    ("auth", "The provider refused the key.", 0.2, 401),
)


def week(admin: User, mara: User, agents: list[Agent]) -> None:
    """Make finished runs of the last days."""
    now = timezone.now()
    for number in reversed(range(120)):
        begin = now - timedelta(hours=4 + number * 1.3, minutes=random.random() * 50)
        finished(
            random.choice([admin, admin, mara]),
            random.choice(agents),
            random.choice(ENDS),
            begin,
            pk=number_at(begin),
        )


def week_before(admin: User, mara: User, agents: list[Agent]) -> None:
    """Make fewer finished runs of the days before, so that figures have changed."""
    state, now = random.getstate(), timezone.now()
    for number in reversed(range(84)):
        begin = now - timedelta(days=8, hours=number * 1.6)
        ends = random.choice([*ENDS[2:], "failed"])
        owner = random.choice([admin, mara])
        finished(owner, random.choice(agents), ends, begin, pk=600 - 4 * number)
    random.setstate(state)


def finished(
    owner: User, agent: Agent, status: str, begin: datetime, **fields: Any
) -> Run:
    """Make one run that began at `begin`, as it would be after its end."""
    places, work = WORK[agent.slug]
    pace, size = 0.4 + 1.6 * random.random() ** 2, 0.5 + 4 * random.random() ** 3
    done = {"succeeded": len(work), "canceled": 1}.get(status, len(work) - 1)
    rounds = tuple(slowed(one, pace, size) for one in work[:done])
    options = OPTIONS
    if status == "succeeded":
        fields["output"] = rounds[-1].text
    elif status == "limit_reached":
        options = OPTIONS.model_copy(update={"max_iterations": done})
        fields["output"] = "Agent stopped due to iteration limit or time limit."
    elif status == "failed":
        code, message, elapsed, answer = random.choice(FAILURES)
        fields |= {"error_code": code, "error_message": message}
    run = played(
        *(owner, agent, fields.pop("pk"), rounds),
        status=status,
        options=options,
        ago=(timezone.now() - begin).total_seconds(),
        question=fields.pop("question", QUESTIONS[random.choice(places)]),
        **fields,
    )
    if status == "failed":
        attempted(run, code, message, (None,), elapsed=elapsed, status=answer)
    elif status == "canceled":
        cut_off(run, by=owner)
    return run


def slowed(one: Round, pace: float, size: float) -> Round:
    """Return a round that takes longer, and reads more."""
    tools = tuple(tool._replace(seconds=tool.seconds * pace) for tool in one.tools)
    tokens = int(one.tokens * size)
    return one._replace(seconds=one.seconds * pace, tokens=tokens, tools=tools)
