"""Schedules of a lived-in site: at work, paused, refused, with times made up for."""

from datetime import timedelta
from zoneinfo import ZoneInfo

from django.contrib.auth.models import User
from django.utils import timezone

from runs.models import Agent, Schedule
from runs.services.errors import NotPublished
from runs.services.schedules.cron import find_next_due_time
from tests.browser.seed.runs import number_at
from tests.browser.seed.week import finished
from tests.make import make_schedule

SHANGHAI, BERLIN = ZoneInfo("Asia/Shanghai"), ZoneInfo("Europe/Berlin")
NEW_YORK = ZoneInfo("America/New_York")
WEATHER = "看一下北京明天的天气，适合出门就提醒我带什么"


def schedules(admin: User, mara: User, agents: list[Agent]) -> None:
    """Make five schedules, the first with a history."""
    planner, triage, _, _, payouts = agents
    now = timezone.now()
    day = find_next_due_time("0 7 * * *", SHANGHAI, after=now)
    assert day is not None
    morning = make_schedule(
        admin,
        pk=901,
        agent=planner,
        name="Morning outlook for 北京",
        inputs={"input": WEATHER, "city": "北京", "people": "2"},
        cron="0 7 * * *",
        time_zone="Asia/Shanghai",
        next_at=day,
        last_at=day - timedelta(days=1),
        missed=2,
    )
    ends = ("succeeded", "failed", "succeeded", "limit_reached", "succeeded")
    for ago, status in reversed(list(zip((1, 4, 5, 6, 7), ends, strict=True))):
        begun = day - timedelta(days=ago)  # 2 and 3 days ago no worker was there
        run = finished(
            *(admin, planner, status, begun),
            pk=number_at(begun) + 1,
            schedule=morning,
            source="schedule",
            question=WEATHER,
            inputs=morning.inputs,
        )
        Schedule.objects.filter(pk=morning.pk).update(last_run=run)
    make_schedule(
        admin,
        pk=902,
        agent=triage,
        name="Triage of new tickets",
        inputs={"input": "Sort the tickets that came in since the last time."},
        cron="*/10 * * * *",
        time_zone="Europe/Berlin",
        next_at=find_next_due_time("*/10 * * * *", BERLIN, after=now),
    )
    due = find_next_due_time("0 6 L * *", BERLIN, after=now - timedelta(days=31))
    assert due is not None
    make_schedule(
        admin,
        pk=903,
        agent=payouts,
        name="Payouts, reconciled each month before the partners ask for them",
        cron="0 6 L * *",
        time_zone="Europe/Berlin",
        next_at=find_next_due_time("0 6 L * *", BERLIN, after=now),
        problem=str(NotPublished(payouts.name)),
        problem_at=due,
    )
    make_schedule(
        mara,
        pk=904,
        agent=planner,
        name="Weekend ideas",
        inputs={
            "input": "Two ideas for this weekend",
            "city": "Hangzhou",
            "people": "2",
        },
        cron="0 16 * * 5",
        next_at=None,
    )
    make_schedule(
        mara,
        pk=905,
        agent=planner,
        name="Office hours",
        inputs={
            "input": "What changes in the town today?",
            "city": "New York",
            "people": "2",
        },
        cron="*/20 9-17 * * MON-FRI",
        time_zone="America/New_York",
        next_at=find_next_due_time("*/20 9-17 * * MON-FRI", NEW_YORK, after=now),
        skipped=1,
    )
