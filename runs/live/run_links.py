"""Links for programs: to the page of a run, and to where a person decides."""

from django.conf import settings
from django.urls import reverse


def build_run_url(run_id: int) -> str:
    return settings.PUBLIC_URL + reverse("run-detail", args=[run_id])


def build_decision_url(run_id: int, decision_id: int | None) -> str:
    """Return where a person decides; the run, if the decision is made already."""
    if decision_id is None:
        return build_run_url(run_id)
    return settings.PUBLIC_URL + reverse("approval-detail", args=[decision_id])
