"""Invariants of deliveries; `check_invariants` includes them."""

from collections.abc import Iterator

from django.db.models import F, Q

from runs.models import Delivery, WebhookEvent


def deliveries_match_their_runs() -> Iterator[str]:
    """Test runs have no deliveries; child runs only those that need a person.

    A delivered delivery had a successful response.
    """
    needs = [WebhookEvent.NEEDS_APPROVAL, WebhookEvent.NEEDS_DECISION]
    silent = Q(run__is_test=True) | Q(run__parent_step__isnull=False) & ~Q(
        event__in=needs
    )
    message = Delivery.objects.filter(silent).values_list("pk", "run_id", "event")
    for pk, run_id, event in message.iterator():
        yield f"delivery {pk} tells {event} of run {run_id}, a test or part of another"
    early = Delivery.objects.filter(seq__gt=F("run__seq"))
    for pk, seq, run_id in early.values_list("pk", "seq", "run_id").iterator():
        yield f"delivery {pk} tells of the seq {seq}, which run {run_id} has not yet"
    taken = Q(
        response_status__gte=200, response_status__lt=300, attempts__gt=0, error=""
    )
    odd = Delivery.objects.filter(~taken, status=Delivery.Status.DELIVERED)
    for pk, answered in odd.values_list("pk", "response_status").iterator():
        yield f"delivery {pk} is delivered, but was answered {answered}"
