"""The site in the API: you, usage, audit log, workers, health."""

import re
from datetime import date
from typing import Annotated, Any, Literal

from django.contrib.auth.models import User
from django.db.models import Sum
from django.http import HttpRequest, HttpResponse
from pydantic import BeforeValidator, Field

from runs.api.dispatch import json_response
from runs.api.problems import field_problem
from runs.api.queries import Page, PageQuery, Query, paginate_by_id
from runs.api.route import ApiRequest, Route
from runs.api.shapes import Shape
from runs.api.site.people import AccountKind, get_account_kind, list_groups_of_user
from runs.models import DailyRunStats, Worker
from runs.serializers import Json, format_timestamp
from runs.services.health.status import check_health
from tools.models import AuditEntry

ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def check_iso_date(text: str) -> str:
    """Refuse what pydantic would read as seconds since 1970, such as `0`."""
    if not ISO_DATE.fullmatch(text):
        raise ValueError("Enter a date like 2026-11-21")
    return text


class MeShape(Shape):
    """Who you are, and what your token allows."""

    id: int
    username: str
    kind: AccountKind
    is_superuser: bool
    groups: list[str]
    scopes: list[str]


IsoDate = Annotated[date, BeforeValidator(check_iso_date)]


class UsageQuery(Query):
    """Of which days, by UTC, and how the sums are divided."""

    begin: IsoDate | None = None
    end: IsoDate | None = None
    """The last day."""
    by: Literal["day", "agent", "user", "status"] = "day"


class UsageRowShape(Shape):
    """What ended runs used."""

    key: str | None
    """The day, agent, user or status; null for a deleted one."""
    runs: int
    tokens: int
    cost: str
    """In the currency of your prices."""


class UsageReportShape(Shape):
    """What ended runs used, divided."""

    data: list[UsageRowShape]


class AuditQuery(PageQuery):
    """Which entries."""

    by: Annotated[str, Field(max_length=150)] = ""
    """User name."""
    noun: Annotated[str, Field(max_length=30)] = ""
    action: Annotated[str, Field(max_length=30)] = ""


class AuditShape(Shape):
    """Who did what, when."""

    id: int
    at: str
    by: str
    way: Literal["page", "api", "server"]
    action: str
    noun: str
    thing: str
    thing_id: int | None
    changes: dict[str, Any]
    note: str


class WorkerShape(Shape):
    """A worker process."""

    id: int
    name: str
    host: str
    queues: list[str]
    threads: int
    running: int
    waiting: int
    version: str
    started_at: str
    last_heartbeat_at: str
    stopped_at: str | None


class HealthShape(Shape):
    """Whether the parts of the site work, as `/healthz` says."""

    data: dict[str, Any]


USAGE_COLUMNS = {
    "day": "day",
    "agent": "agent__slug",
    "user": "owner__username",
    "status": "status",
}


def require_admin(user: User) -> None:
    if not user.is_superuser:
        raise field_problem("Authorization", "Only administrators may do this.", 403)


def read_me(request: ApiRequest, user: User) -> HttpResponse:
    """You, and the scopes of your token."""
    token = request.api_token
    return json_response(
        {
            "id": user.pk,
            "username": user.get_username(),
            "kind": get_account_kind(user),
            "is_superuser": user.is_superuser,
            "groups": list_groups_of_user(user),
            "scopes": token.scopes.split() if token else ["read"],
        }
    )


def read_usage(request: HttpRequest, user: User, query: UsageQuery) -> HttpResponse:
    """Runs, tokens and cost of your ended runs; administrators see those of all."""
    rows = DailyRunStats.objects.all()
    if not user.is_superuser:
        rows = rows.filter(owner=user)
    if query.begin is not None:
        rows = rows.filter(day__gte=query.begin)
    if query.end is not None:
        rows = rows.filter(day__lte=query.end)
    column = USAGE_COLUMNS[query.by]
    sums = rows.values(column).annotate(
        all_runs=Sum("runs"), all_tokens=Sum("tokens"), all_cost=Sum("cost")
    )
    return json_response(
        {
            "data": [
                {
                    "key": None if row[column] is None else str(row[column]),
                    "runs": row["all_runs"],
                    "tokens": row["all_tokens"],
                    "cost": f"{row['all_cost']:.6f}",
                }
                for row in sums.order_by(column)
            ]
        }
    )


def list_audit_entries(
    request: HttpRequest, user: User, query: AuditQuery
) -> HttpResponse:
    """The audit log, the newest entries first; for administrators."""
    require_admin(user)
    rows = AuditEntry.objects.all()
    for name in ("by", "noun", "action"):
        if value := getattr(query, name):
            rows = rows.filter(**{name: value})
    return json_response(paginate_by_id(rows, query, audit_json))


def audit_json(entry: AuditEntry) -> Json:
    return {
        "id": entry.pk,
        "at": format_timestamp(entry.at),
        "by": entry.by,
        "way": entry.way,
        "action": entry.action,
        "noun": entry.noun,
        "thing": entry.thing,
        "thing_id": entry.thing_number,
        "changes": entry.changes,
        "note": entry.note,
    }


def list_workers(request: HttpRequest, user: User, query: PageQuery) -> HttpResponse:
    """Worker processes, the newest first."""
    return json_response(paginate_by_id(Worker.objects.all(), query, worker_json))


def worker_json(worker: Worker) -> Json:
    return {
        "id": worker.pk,
        "name": worker.name,
        "host": worker.host,
        "queues": [name for name in worker.queues.split(",") if name],
        "threads": worker.threads,
        "running": worker.running,
        "waiting": worker.waiting,
        "version": worker.version,
        "started_at": format_timestamp(worker.started_at),
        "last_heartbeat_at": format_timestamp(worker.last_heartbeat),
        "stopped_at": format_timestamp(worker.stopped_at),
    }


def read_health(request: HttpRequest, user: User) -> HttpResponse:
    """Database, broker, workers and queue."""
    return json_response({"data": check_health().to_json()})


ROUTES = [
    Route("GET", "me", read_me, "Who you are", MeShape),
    Route("GET", "usage", read_usage, "Read usage", UsageReportShape, query=UsageQuery),
    Route(
        "GET",
        "audit",
        list_audit_entries,
        "Read the audit log",
        Page[AuditShape],
        scope="admin",
        query=AuditQuery,
    ),
    Route(
        "GET",
        "workers",
        list_workers,
        "List workers",
        Page[WorkerShape],
        query=PageQuery,
    ),
    Route("GET", "health", read_health, "Read the state of the site", HealthShape),
]
