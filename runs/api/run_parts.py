"""What a run consists of, in the API: events, steps, model calls, failed attempts."""

from typing import Any, Literal

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse

from runs.api.dispatch import json_response
from runs.api.problems import field_problem, not_found
from runs.api.queries import Id, Page, PageQuery, Query, invalid_cursor
from runs.api.route import Route
from runs.api.runs import get_run_for_user
from runs.api.shapes import CallShape, RunShape, Shape, StepShape
from runs.api.waiting import check_open_streams
from runs.live.api_renderer import ApiRenderer
from runs.live.asgi import FROM_THE_START, StreamRequest, live_app
from runs.live.auth import Person, get_request_credentials
from runs.live.deferred import DeferredResponse, Headers, Receive, Send
from runs.models import ModelAttempt, ModelCall, Run
from runs.serializers import (
    STEP_FIELDS,
    Json,
    annotate_child_runs,
    call_json,
    format_timestamp,
    step_json,
    to_milliseconds,
)
from runs.services.telemetry.sent_prompt import load_sent_prompt
from runs.views.compare.page import compare_settings, get_answer_text
from runs.views.compare.rows import count_pairs, pair_rows
from runs.views.run_actions.download import build_run_export
from runs.whole_number import parse_whole_number

EVENT_STREAM = "text/event-stream"


class EventsQuery(Query):
    """From where to follow a run."""

    after: Id | None = None
    """Id of the last event that you have; `Last-Event-ID` counts more."""


class AttemptShape(Shape):
    """A failed attempt of a model call."""

    model_call: int
    """Number of the call."""
    attempt: int
    code: str
    message: str
    http_status: int | None
    partial_text: str
    """What it had streamed, if no attempt followed."""
    retry_in_seconds: float | None
    started_at: str
    duration_ms: int


class SentShape(Shape):
    """What a model call sent."""

    model_call: int
    is_proven: bool
    """Whether it is proven to be exactly what was sent."""
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    stop: list[str]
    settings: dict[str, Any]
    output_schema: dict[str, Any] | None


class RunExportShape(Shape):
    """A run with all that belongs to it, secrets masked."""

    format: str
    run: RunShape
    fork: dict[str, Any] | None
    model_calls: list[dict[str, Any]]
    steps: list[dict[str, Any]]
    attempts: list[dict[str, Any]]


class CompareQuery(Query):
    """Which run to compare with."""

    other: Id


class SettingShape(Shape):
    """A setting that differs; of long texts, the lines of their difference."""

    name: str
    a: str
    b: str
    lines: list[str]


class RowCountsShape(Shape):
    """How many model calls and steps are equal, different, or in one run only."""

    same: int
    differ: int
    only_a: int
    only_b: int


class ComparisonShape(Shape):
    """Two runs side by side."""

    a: int
    b: int
    settings: list[SettingShape]
    rows: RowCountsShape
    answers: Literal["same", "different", "only_a", "only_b", "none"]


def stream_run_events(
    request: HttpRequest, user: User, pk: str, query: EventsQuery
) -> HttpResponse:
    """Follow a run as server-sent events: `model_call`, `step`, `run`, `draft`, `end`.

    After an interruption, send the last id as `Last-Event-ID`.
    """
    run = get_run_for_user(user, int(pk))
    check_open_streams(user, "id")
    if request.method == "HEAD":
        return HttpResponse(content_type=EVENT_STREAM)
    after = parse_whole_number(request.headers.get("Last-Event-ID", ""))
    if after is None:
        after = FROM_THE_START if query.after is None else query.after
    stream = StreamRequest(ApiRenderer, run.pk, after, get_request_credentials(request))
    viewer = Person(user.pk)

    async def send_events(headers: Headers, receive: Receive, send: Send) -> None:
        await live_app.send_stream(stream, viewer, receive, send, headers=headers)

    return DeferredResponse(send_events, content_type=EVENT_STREAM)


def list_steps(
    request: HttpRequest, user: User, pk: str, query: PageQuery
) -> HttpResponse:
    """The steps of a run in order."""
    rows = get_run_for_user(user, int(pk)).steps.only(*STEP_FIELDS)
    rows = annotate_child_runs(rows.filter(index__gt=parse_place(query)))
    found = list(rows.order_by("index")[: query.limit + 1])
    page = found[: query.limit]
    return json_response(
        {
            "data": [step_json(step) for step in page],
            "next": str(page[-1].index) if len(found) > query.limit else None,
        }
    )


def list_model_calls(
    request: HttpRequest, user: User, pk: str, query: PageQuery
) -> HttpResponse:
    """The model calls of a run in order, with their replies and usage."""
    run = get_run_for_user(user, int(pk))
    rows = ModelCall.objects.filter(run=run, number__gt=parse_place(query))
    found = list(rows.order_by("number")[: query.limit + 1])
    page = found[: query.limit]
    return json_response(
        {
            "data": [call_json(call) for call in page],
            "next": str(page[-1].number) if len(found) > query.limit else None,
        }
    )


def parse_place(query: PageQuery) -> int:
    """Return the index or number after which a page begins; -1 for the first page."""
    if not query.cursor:
        return -1
    number = parse_whole_number(query.cursor)
    if number is None:
        raise invalid_cursor()
    return number


def read_sent_request(
    request: HttpRequest, user: User, pk: str, number: str
) -> HttpResponse:
    """What the model saw: the exact request of a call."""
    run = get_run_for_user(user, int(pk))
    calls = ModelCall.objects.filter(run=run, number=int(number))
    call = calls.select_related("run__spec", "run__agent").first()
    if call is None:
        raise not_found("Model call", number)
    rebuilt = load_sent_prompt(call)
    if rebuilt is None:
        message = "The records of the run no longer lead to this request."
        raise field_problem("number", message, 409)
    sent = rebuilt.request.model_dump(mode="json")
    return json_response(
        {
            "model_call": call.number,
            "is_proven": rebuilt.matches_digest,
            **{
                name: sent[name]
                for name in ("messages", "tools", "stop", "settings", "output_schema")
            },
        }
    )


def list_attempts(
    request: HttpRequest, user: User, pk: str, query: PageQuery
) -> HttpResponse:
    """The failed attempts of model calls, the first ones first."""
    rows = ModelAttempt.objects.filter(run=get_run_for_user(user, int(pk)))
    place = parse_place(query)
    found = list(rows.filter(pk__gt=place).order_by("pk")[: query.limit + 1])
    page = found[: query.limit]
    return json_response(
        {
            "data": [attempt_json(one) for one in page],
            "next": str(page[-1].pk) if len(found) > query.limit else None,
        }
    )


def attempt_json(one: ModelAttempt) -> Json:
    return {
        "model_call": one.number,
        "attempt": one.attempt,
        "code": one.code,
        "message": one.message,
        "http_status": one.status,
        "partial_text": one.partial_text,
        "retry_in_seconds": one.retry_in,
        "started_at": format_timestamp(one.started_at),
        "duration_ms": to_milliseconds(one.elapsed),
    }


def export_run(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """The run with all model calls, steps and failed attempts, secrets masked."""
    return json_response(build_run_export(get_run_for_user(user, int(pk))))


def compare_runs(
    request: HttpRequest, user: User, pk: str, query: CompareQuery
) -> HttpResponse:
    """What was set differently in two runs, and whether they did the same."""
    one, other = get_run_for_user(user, int(pk)), find_other_run(user, query)
    totals = count_pairs(pair_rows(one, other))
    return json_response(
        {
            "a": one.pk,
            "b": other.pk,
            "settings": [
                {
                    "name": setting.label,
                    "a": setting.a,
                    "b": setting.b,
                    "lines": [line.text for line in setting.lines],
                }
                for setting in compare_settings(one, other)
            ],
            "rows": totals._asdict(),
            "answers": compare_answer_texts(one, other),
        }
    )


def find_other_run(user: User, query: CompareQuery) -> Run:
    run = Run.objects.visible_to(user).filter(pk=query.other).first()
    if run is None:
        raise field_problem("other", f"Run {query.other} not found.")
    return run


def compare_answer_texts(one: Run, other: Run) -> str:
    a, b = get_answer_text(one), get_answer_text(other)
    if a and b:
        return "same" if a == b else "different"
    if not a and not b:
        return "none"
    return "only_a" if a else "only_b"


ROUTES = [
    Route(
        "GET",
        "runs/{id}/events",
        stream_run_events,
        "Follow a run",
        query=EventsQuery,
        media=EVENT_STREAM,
        errors=(429,),
    ),
    Route(
        "GET",
        "runs/{id}/steps",
        list_steps,
        "List the steps of a run",
        Page[StepShape],
        query=PageQuery,
    ),
    Route(
        "GET",
        "runs/{id}/model-calls",
        list_model_calls,
        "List the model calls of a run",
        Page[CallShape],
        query=PageQuery,
    ),
    Route(
        "GET",
        "runs/{id}/model-calls/{number}/request",
        read_sent_request,
        "Read what the model saw",
        SentShape,
        errors=(409,),
    ),
    Route(
        "GET",
        "runs/{id}/attempts",
        list_attempts,
        "List failed attempts of model calls",
        Page[AttemptShape],
        query=PageQuery,
    ),
    Route("GET", "runs/{id}/export", export_run, "Export a run", RunExportShape),
    Route(
        "GET",
        "runs/{id}/compare",
        compare_runs,
        "Compare two runs",
        ComparisonShape,
        query=CompareQuery,
    ),
]
