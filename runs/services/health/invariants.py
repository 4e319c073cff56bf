"""Invariants of the rows of all runs, and violations of them.

Each rule is one statement, so that it sees one moment even while workers write. Used by
soak tests and `manage.py check_invariants`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, NamedTuple

from django.db import connection, transaction
from django.db.models import (
    Count,
    DecimalField,
    Exists,
    F,
    Max,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
    Value,
)
from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce

from runs.models import AgentStep, Decision, IdempotencyKey, ModelCall, Run
from runs.models.runs import FINISHED_STATUSES, UNFINISHED_STATUSES
from runs.services.health.related_rows import (
    daily_stats_match_the_runs,
    deliveries_match_their_runs,
    runs_fit_their_schedules,
)

Step = AgentStep.Status
AWAITING_PERSON_STATUSES = (Run.Status.AWAITING_APPROVAL, Run.Status.AWAITING_DECISION)

COST_TOLERANCE = Decimal("0.0001")
"""Tolerance of sums of costs: SQLite adds floats."""


class Violation(NamedTuple):
    """A row that breaks a rule."""

    rule: str
    message: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.message}"


Rule = Callable[[], Iterator[str]]


def check_invariants() -> Iterator[Violation]:
    """Yield each violation; rows are streamed, so memory does not grow with them."""
    for rule in RULES:
        with _without_timeout():
            for what in rule():
                yield Violation(rule.__name__, what)


@contextmanager
def _without_timeout() -> Iterator[None]:
    """Let statements take longer than those of a web request.

    Not in a transaction on SQLite, which would keep workers from writing.
    """
    if connection.vendor != "postgresql":
        yield
        return
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 0")
        yield


def steps_are_contiguous() -> Iterator[str]:
    """Steps have the indexes 0 to next_index - 1."""
    rows = Run.objects.annotate(n=Count("steps"), top=Coalesce(Max("steps__index"), -1))
    wrong = rows.exclude(n=F("next_index"), top=F("next_index") - 1)
    for pk, n, top, following in wrong.values_list(
        "pk", "n", "top", "next_index"
    ).iterator():
        yield f"run {pk} has {n} steps, the last is {top}, next_index is {following}"


def calls_are_contiguous() -> Iterator[str]:
    """Model calls have the numbers 0 to next_number - 1."""
    rows = Run.objects.annotate(
        n=Count("calls"), top=Coalesce(Max("calls__number"), -1)
    )
    wrong = rows.exclude(n=F("next_number"), top=F("next_number") - 1)
    for pk, n, top, following in wrong.values_list(
        "pk", "n", "top", "next_number"
    ).iterator():
        yield (
            f"run {pk} has {n} model calls, the last is {top}, "
            f"next_number is {following}"
        )


def runs_that_are_over_have_no_open_steps() -> Iterator[str]:
    """When a run ends, each of its steps has ended."""
    yield from format_step_violations(
        AgentStep.objects.filter(
            run__status__in=FINISHED_STATUSES,
            status__in=[Step.PLANNED, Step.AWAITING_APPROVAL, Step.STARTED],
        ),
        "is {status}, but its run is {run__status}",
        "run__status",
    )


def leases_are_of_running_runs_only() -> Iterator[str]:
    """A run has a lease exactly while it is running."""
    yield from format_run_violations(
        Run.objects.filter(
            Q(status="running", lease_until=None)
            | ~Q(status="running") & Q(lease_until__isnull=False)
        ),
        "is {status} with the lease {lease_until}",
        "lease_until",
    )


def running_runs_were_claimed() -> Iterator[str]:
    """A running run has been claimed: fence and start are set."""
    yield from format_run_violations(
        Run.objects.filter(Q(fence=0) | Q(started_at=None), status="running"),
        "is running with the fence {fence}, started at {started_at}",
        "fence",
        "started_at",
    )


def answered_steps_have_an_outcome() -> Iterator[str]:
    """Exactly the answered steps have an observation.

    The result of a tool may be empty; a refusal always has text.
    """
    yield from format_step_violations(
        AgentStep.objects.filter(
            Q(status__in=AgentStep.ANSWERED, elapsed=None)
            | Q(status__in=[Step.REJECTED, Step.SKIPPED], observation="")
        ),
        "is {status} without an outcome",
    )
    yield from format_step_violations(
        AgentStep.objects.exclude(status__in=AgentStep.ANSWERED).exclude(
            observation=""
        ),
        "is {status} and has an observation already",
    )


def started_steps_were_counted() -> Iterator[str]:
    """A step that runs, or ran, has an attempt and a start time."""
    yield from format_step_violations(
        AgentStep.objects.filter(
            Q(attempts=0) | Q(started_at=None), status=Step.STARTED
        ),
        "is started after {attempts} attempts, at {started_at}",
        "attempts",
        "started_at",
    )


def side_effects_repeat_only_on_retry() -> Iterator[str]:
    """A side effect is called once, plus once for each retry by a person."""
    rows = AgentStep.objects.filter(effect="side_effect", attempts__gt=1).annotate(
        retries=Count("decisions", filter=Q(decisions__answer=Decision.Answer.RETRY))
    )
    yield from format_step_violations(
        rows.filter(attempts__gt=F("retries") + 1),
        "was made {attempts} times, {retries} of them by a person's retry",
        "attempts",
        "retries",
    )


def tool_modes_make_no_other_calls() -> Iterator[str]:
    """What a tool mode answers is not called, and it leaves no call to others."""
    own = AgentStep.objects.filter(is_copied=False, attempts__gt=0)
    sends_all = Q(run__tool_mode="")
    yield from format_step_violations(
        own.filter(
            ~Q(answered_by="")
            | Q(run__tool_mode="replay_strict")
            | Q(effect="side_effect") & ~sends_all
        ),
        "was made {attempts} times in spite of its run's tool mode",
        "attempts",
    )


def steps_belong_to_the_call_that_asked() -> Iterator[str]:
    """A step and its model call belong to one run and one round."""
    yield from format_step_violations(
        AgentStep.objects.exclude(
            model_call__run=F("run"),
            model_call__round=F("round"),
            model_call__at_index__lte=F("index"),
        ),
        "was asked for by model call {model_call_id}, of another run or round",
        "model_call_id",
    )


def seq_is_the_highest_number() -> Iterator[str]:
    """No row of a run has a higher seq than the run."""
    for name in ("steps__changed_seq", "calls__changed_seq", "attempts__created_seq"):
        yield from format_run_violations(
            Run.objects.annotate(top=Max(name)).filter(top__gt=F("seq")),
            f"has the seq {{seq}}, but {name} goes up to {{top}}",
            "seq",
            "top",
        )
    for model in (AgentStep, ModelCall):
        rows: Any = model._default_manager
        late = rows.filter(changed_seq__lt=F("created_seq"))
        for pk, run_id in late.values_list("pk", "run_id").iterator():
            yield f"{model._meta.verbose_name} {pk} of run {run_id} changed unborn"


def usage_adds_up() -> Iterator[str]:
    """A run's counters are the sums of its calls and its ended children.

    Forks do not pay for copies.
    """
    child = Run.objects.filter(parent_step__run=OuterRef("pk"))
    for runs, has_children in (
        (Run.objects.filter(~Exists(child)), False),
        (Run.objects.filter(Exists(child)), True),  # few, and slow one by one
    ):
        yield from _find_wrong_usage(runs, has_children=has_children)
        yield from _find_wrong_costs(runs, has_children=has_children)


def _find_wrong_usage(runs: "QuerySet[Run]", *, has_children: bool) -> Iterator[str]:
    def of_children(name: str) -> Combinable:
        return Coalesce(sum_over_children(name), 0) if has_children else Value(0)

    own = Q(calls__is_copied=False)
    rows = runs.annotate(
        n=Count("calls", filter=own) + of_children("model_calls"),
        went_in=Coalesce(Sum("calls__input_tokens", filter=own), 0)
        + of_children("input_tokens"),
        came_out=Coalesce(Sum("calls__output_tokens", filter=own), 0)
        + of_children("output_tokens"),
    )
    yield from format_run_violations(
        rows.exclude(
            model_calls=F("n"), input_tokens=F("went_in"), output_tokens=F("came_out")
        ),
        "counts {model_calls} calls, {input_tokens} + {output_tokens} tokens; "
        "its calls and children have {n}, with {went_in} + {came_out}",
        *("model_calls", "input_tokens", "output_tokens"),
        *("n", "went_in", "came_out"),
    )


def _find_wrong_costs(runs: "QuerySet[Run]", *, has_children: bool) -> Iterator[str]:
    zero = Value(Decimal(0), output_field=DecimalField())
    paid_by_children = (
        Coalesce(sum_over_children("cost"), zero) if has_children else zero
    )
    paid = runs.annotate(paid=Coalesce(Sum("calls__cost"), zero) + paid_by_children)
    yield from format_run_violations(
        paid.filter(
            Q(paid__gt=F("cost") + COST_TOLERANCE)
            | Q(paid__lt=F("cost") - COST_TOLERANCE)
        ),
        "cost {cost}, its model calls and children {paid}",
        "cost",
        "paid",
    )


def sum_over_children(name: str) -> Subquery:
    """Return the sum of a counter over a run's ended children."""
    rows = Run.objects.filter(
        parent_step__run=OuterRef("pk"), status__in=FINISHED_STATUSES
    )
    sums = rows.order_by().values("parent_step__run").annotate(sum=Sum(name))
    return Subquery(sums.values("sum"))


def awaiting_runs_have_an_open_decision() -> Iterator[str]:
    """A run that waits for a person has an open decision of that kind."""
    for status, question in zip(
        AWAITING_PERSON_STATUSES, Decision.Question, strict=True
    ):
        asked = Decision.objects.filter(
            step__run=OuterRef("pk"), question=question, answer=""
        )
        yield from format_run_violations(
            Run.objects.filter(~Exists(asked), status=status),
            "is {status}, but asks nothing",
        )


def open_decisions_belong_to_awaiting_runs() -> Iterator[str]:
    """An open decision belongs to a run that waits for it."""
    rows = Decision.objects.filter(answer="").exclude(
        step__run__status__in=AWAITING_PERSON_STATUSES
    )
    found = rows.values_list("pk", "step__run_id", "step__run__status")
    for pk, run_id, status in found.iterator():
        yield f"decision {pk} is open, but run {run_id} is {status}"


def answers_have_a_time() -> Iterator[str]:
    """A decision has an answer exactly when it has the time of one."""
    rows = Decision.objects.filter(
        Q(answer="", at__isnull=False) | ~Q(answer="") & Q(at=None)
    )
    for pk, answer, at in rows.values_list("pk", "answer", "at").iterator():
        yield f"decision {pk} has the answer {answer!r} at {at}"


def waiting_runs_wait_for_something() -> Iterator[str]:
    """A waiting run has a retry time, a full limit or an unfinished child."""
    child = Run.objects.filter(
        parent_step__run=OuterRef("pk"), status__in=UNFINISHED_STATUSES
    )
    yield from format_run_violations(
        Run.objects.filter(
            ~Exists(child), status="waiting", available_at=None, waiting_for=""
        ),
        "is waiting for nothing",
    )


def children_belong_to_their_steps() -> Iterator[str]:
    """A step waits for its child, which has the parent's owner and came after it.

    So no run is its own ancestor, and no step is answered before its child has
    ended.
    """
    yield from format_run_violations(
        Run.objects.filter(parent_step__isnull=False).exclude(
            owner=F("parent_step__run__owner"), pk__gt=F("parent_step__run")
        ),
        "is a child of run {parent_step__run}, of another owner or younger",
        "parent_step__run",
    )
    yield from format_run_violations(
        Run.objects.filter(
            parent_step__status__in=AgentStep.ANSWERED, status__in=UNFINISHED_STATUSES
        ),
        "is {status}, but the step that asked for it is answered",
    )
    yield from format_step_violations(
        AgentStep.objects.filter(
            run__status="waiting",
            run__available_at=None,
            status=Step.STARTED,
            child=None,
        ),
        "is {status} without a child, and its run waits for children",
    )


def children_end_with_their_parents() -> Iterator[str]:
    """When a run has ended, its children have ended or were asked to."""
    yield from format_run_violations(
        Run.objects.filter(
            status__in=UNFINISHED_STATUSES,
            parent_step__run__status__in=FINISHED_STATUSES,
            cancel_requested_at=None,
        ),
        "is {status}, but its parent is {parent_step__run__status}",
        "parent_step__run__status",
    )
    yield from format_run_violations(
        Run.objects.filter(parent_step__isnull=False).exclude(source="parent"),
        "has a parent, but was started {source}",
        "source",
    )


def ended_runs_have_a_reason() -> Iterator[str]:
    """Runs at a limit have a reason, failed ones an error, and no others do."""
    yield from format_run_violations(
        Run.objects.filter(
            Q(status="limit_reached", stop_reason="")
            | ~Q(status="limit_reached") & ~Q(stop_reason="")
        ),
        "is {status} with the reason {stop_reason!r}",
        "stop_reason",
    )
    yield from format_run_violations(
        Run.objects.filter(
            Q(status="failed") & (Q(error_code="") | Q(error_message=""))
            | ~Q(status="failed") & ~Q(error_code="")
        ),
        "is {status} with the error {error_code!r}",
        "error_code",
    )
    yield from format_run_violations(
        Run.objects.filter(status="canceled", cancel_requested_at=None),
        "is canceled, but nobody asked for it",
    )


def ends_come_after_starts() -> Iterator[str]:
    """Exactly the ended runs have an end, which is not before their start."""
    yield from format_run_violations(
        Run.objects.filter(
            Q(status__in=FINISHED_STATUSES, ended_at=None)
            | Q(status__in=UNFINISHED_STATUSES, ended_at__isnull=False)
            | Q(ended_at__lt=F("started_at"))
        ),
        "is {status}, started at {started_at}, ended at {ended_at}",
        "started_at",
        "ended_at",
    )


def runs_fit_their_agents() -> Iterator[str]:
    """Version and conversation of a run belong to its agent."""
    yield from format_run_violations(
        Run.objects.filter(
            ~Q(version=None) & ~Q(version__agent=F("agent"))
            | ~Q(conversation=None) & ~Q(conversation__agent=F("agent"))
        ),
        "of agent {agent_id} has a version or conversation of another",
        "agent_id",
    )
    keys = IdempotencyKey.objects.exclude(run=None).exclude(run__owner=F("user"))
    for pk, run_id in keys.values_list("pk", "run_id").iterator():
        yield f"idempotency key {pk} is of another user than its run {run_id}"


def format_run_violations(
    rows: "QuerySet[Run]", what: str, *names: str
) -> Iterator[str]:
    """Yield a message for each run: `what` with its columns filled in."""
    for row in rows.values("pk", "status", *names).order_by("pk").iterator():
        yield f"run {row['pk']} {what.format(**row)}"


def format_step_violations(
    rows: "QuerySet[AgentStep]", what: str, *names: str
) -> Iterator[str]:
    """Yield a message for each step: `what` with its columns filled in."""
    found = rows.values("run_id", "index", "status", *names).order_by("run", "index")
    for row in found.iterator():
        yield f"step {row['run_id']}.{row['index']} {what.format(**row)}"


RULES: tuple[Rule, ...] = (
    steps_are_contiguous,
    calls_are_contiguous,
    runs_that_are_over_have_no_open_steps,
    leases_are_of_running_runs_only,
    running_runs_were_claimed,
    answered_steps_have_an_outcome,
    started_steps_were_counted,
    side_effects_repeat_only_on_retry,
    tool_modes_make_no_other_calls,
    steps_belong_to_the_call_that_asked,
    seq_is_the_highest_number,
    usage_adds_up,
    awaiting_runs_have_an_open_decision,
    open_decisions_belong_to_awaiting_runs,
    answers_have_a_time,
    waiting_runs_wait_for_something,
    children_belong_to_their_steps,
    children_end_with_their_parents,
    ended_runs_have_a_reason,
    ends_come_after_starts,
    runs_fit_their_agents,
    deliveries_match_their_runs,
    runs_fit_their_schedules,
    daily_stats_match_the_runs,
)
