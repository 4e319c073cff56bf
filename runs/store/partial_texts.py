"""What the model had written when a run ended without an answer."""

from collections.abc import Iterable

from django.db.models import F

from runs.models import ModelAttempt, Run


def load_partial_texts(runs: Iterable[Run]) -> dict[int, str]:
    """Return the text of the call that had no reply, by run; one query."""
    ended = [run.pk for run in runs if run.is_over and run.answer is None]
    if not ended:
        return {}
    rows = ModelAttempt.objects.filter(run__in=ended, number=F("run__next_number"))
    found = rows.exclude(partial_text="").order_by("attempt")
    return dict(found.values_list("run_id", "partial_text"))
