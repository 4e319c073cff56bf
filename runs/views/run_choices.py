"""What is done to the runs that were chosen in the list."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from runs.htmx import HtmxRequest
from runs.models import Run, RunTag
from runs.models.runs import OVER
from runs.services.cancel_run import cancel_run
from runs.services.delete_runs import delete_runs
from runs.services.errors import RunsError
from runs.services.start_run import start_run
from runs.whole_number import whole_number

MOST = 200
"""Runs at once; a page of the list holds fewer."""


@require_POST
def run_choices(request: HtmxRequest) -> HttpResponse:
    """Stop, start again, tag, compare or delete the chosen runs."""
    chosen = {whole_number(text) for text in request.POST.getlist("run")} - {None}
    back = redirect(back_to(request))
    if len(chosen) > MOST:
        messages.error(request, f"Choose {MOST} runs at most. Nothing was done.")
        return back
    runs = list(Run.objects.visible_to(request.user).filter(pk__in=chosen))
    do = request.POST.get("do", "")
    if not runs:
        messages.error(request, "Choose runs in the list first.")
    elif do == "stop":
        stop(request, runs)
    elif do == "again":
        start_again(request, runs)
    elif do == "tag":
        tag(request, runs)
    elif do == "compare":
        return compare(request, runs) or back
    elif do == "delete":
        return delete(request, runs) or back
    else:
        messages.error(request, "Nothing was done: that is no action on runs.")
    return back


def back_to(request: HtmxRequest) -> str:
    """Return the address of the list as it was."""
    here = request.POST.get("here", "")
    is_ours = here.startswith("/") and url_has_allowed_host_and_scheme(here, None)
    return here if is_ours else reverse("run-list")


def stop(request: HtmxRequest, runs: list[Run]) -> None:
    """Ask each to stop."""
    done = sum(cancel_run(run, by=request.user) for run in runs)
    tell(request, done, "{} to stop.", asked="asked", left=len(runs) - done)


def start_again(request: HtmxRequest, runs: list[Run]) -> None:
    """Start the agent of each with the same input; say which could not."""
    done = 0
    for run in runs:
        try:
            start_run(
                run.agent,
                by=request.user,
                inputs=run.inputs,
                draft=run.version_id is None,
                is_test=run.is_test,
            )
        except RunsError as refused:
            messages.error(request, f"Run {run.pk} was not started again: {refused}")
        else:
            done += 1
    if done:
        messages.success(request, f"{counted(done)} started again.")


def tag(request: HtmxRequest, runs: list[Run]) -> None:
    """Put a word on each, or take it off where all of them have it."""
    name = " ".join(request.POST.get("tag", "").replace("\0", "").split())
    if not name or len(name) > 40:
        messages.error(request, "A tag has 1 to 40 characters. Nothing was changed.")
        return
    had = RunTag.objects.filter(run__in=runs, name=name)
    if had.count() == len(runs):
        had.delete()
        messages.success(request, f"The tag {name} is off {counted(len(runs))}.")
        return
    rows = [RunTag(run=run, name=name) for run in runs]
    RunTag.objects.bulk_create(rows, ignore_conflicts=True)
    messages.success(request, f"{counted(len(runs))} tagged {name}.")


def compare(request: HtmxRequest, runs: list[Run]) -> HttpResponse | None:
    """Go to the page that compares two runs."""
    if len(runs) != 2:
        messages.error(request, "Choose two runs to compare them.")
        return None
    first, second = sorted(run.pk for run in runs)
    return redirect(f"{reverse('run-compare')}?a={first}&b={second}")


def delete(request: HtmxRequest, runs: list[Run]) -> HttpResponse | None:
    """Ask first; then delete those that are over."""
    over = [run for run in runs if run.status in OVER and run.parent_step_id is None]
    if request.POST.get("sure") != "1":
        context = {
            "runs": over,
            "left": len(runs) - len(over),
            "here": back_to(request),
        }
        return render(request, "runs/delete.html", context)
    done = delete_runs(runs, by=request.user)
    tell(request, done, "{} deleted.", asked="", left=len(runs) - done)
    return None


def tell(
    request: HtmxRequest, done: int, sentence: str, *, asked: str, left: int
) -> None:
    """Say for how many it was done, and for how many it made no sense."""
    if done:
        words = f"{counted(done)} {asked}".strip()
        messages.success(request, sentence.format(words))
    if left:
        why = "over already" if asked else "not over yet, or belong to another run"
        messages.info(request, f"{counted(left)} left alone: {why}.")


def counted(number: int) -> str:
    """Return `1 run` or `3 runs`."""
    return f"{number} run" if number == 1 else f"{number} runs"
