"""What must hold of deliveries; `check_invariants` asks it with the rest."""

from collections.abc import Iterator

from django.db.models import F, Q

from runs.models import Delivery, Event


def deliveries_tell_what_happened() -> Iterator[str]:
    """Tests are not told, and of the runs of other runs only that they need somebody.

    What counts as delivered was taken by an answer that says so.
    """
    needs = [Event.NEEDS_APPROVAL, Event.NEEDS_DECISION]
    silent = Q(run__is_test=True) | Q(run__parent_step__isnull=False) & ~Q(
        event__in=needs
    )
    told = Delivery.objects.filter(silent).values_list("pk", "run_id", "event")
    for pk, run_id, event in told:
        yield f"delivery {pk} tells {event} of run {run_id}, a test or part of another"
    early = Delivery.objects.filter(seq__gt=F("run__seq"))
    for pk, seq, run_id in early.values_list("pk", "seq", "run_id"):
        yield f"delivery {pk} tells of the seq {seq}, which run {run_id} has not yet"
    taken = Q(answered__gte=200, answered__lt=300, attempts__gt=0, error="")
    odd = Delivery.objects.filter(~taken, status=Delivery.Status.DELIVERED)
    for pk, answered in odd.values_list("pk", "answered"):
        yield f"delivery {pk} is delivered, but was answered {answered}"
