"""Why runs of an experiment gave no answer, in the active language."""

from collections import Counter, defaultdict

from django.db.models import Count, Q
from django.utils.translation import gettext as _

from runs.models import Experiment, ExperimentRun
from runs.ui.error_labels import get_error_label

IS_OVER = Q(state__in=(ExperimentRun.State.DONE, ExperimentRun.State.REFUSED))
HAS_NO_ANSWER = IS_OVER & Q(run_status__in=("failed", "canceled", ""))


def count_failures(experiment: Experiment) -> dict[int, list[tuple[str, int]]]:
    """Return for each candidate why runs gave no answer, most frequent first."""
    found: dict[int, Counter[str]] = defaultdict(Counter)
    columns = ("candidate", "state", "run_status", "run__error_code")
    failed = experiment.cells.filter(HAS_NO_ANSWER).values_list(*columns)
    for candidate, state, status, code, count in failed.annotate(
        count=Count("pk")
    ).order_by(*columns):
        found[candidate][describe_failure(state, status, code)] += count
    return {pk: counter.most_common() for pk, counter in found.items()}


def describe_failure(state: str, run_status: str, error_code: str | None) -> str:
    if state == "refused":
        return _("not started")
    if error_code:
        return get_error_label(error_code)
    return _("canceled") if run_status == "canceled" else _("failed")
