"""Actions on the runs selected in the list."""

from collections import Counter
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from runs.forms.annotation.add_runs import QueueRunsForm
from runs.forms.datasets.receiver import RunsReceiverForm
from runs.forms.runs.limits import LimitsForm
from runs.htmx import HtmxRequest
from runs.models import Run, RunTag
from runs.models.runs import FINISHED_STATUSES
from runs.services.errors import RunsError
from runs.services.runs.cancel import cancel_run
from runs.services.runs.delete import delete_runs
from runs.services.runs.keep import keep_runs
from runs.services.runs.limits import get_current_limits
from runs.services.runs.resume import resume_run
from runs.services.runs.start import start_run
from runs.services.tool_modes.select_mode import get_tool_mode
from runs.ui.format import number
from runs.ui.frame.undo import add_message_with_undo
from runs.views.lists.confirm import is_confirmed
from runs.views.lists.selection import get_list_url
from runs.views.run.banner import RaisableLimit, list_limits_to_raise
from runs.views.run_list.filters import read_filters
from runs.views.run_list.pagination import build_run_queries
from runs.whole_number import parse_whole_number

MAX_SELECTED_RUNS = 500
"""Runs at once; a page of the list has fewer."""
CONFIRMED_ACTIONS = ("stop", "again", "tag", "keep")
"""Those that are confirmed if they are for all matching runs; the others always are."""


@require_POST
def run_selection(request: HtmxRequest) -> HttpResponse:
    """Do with the selected runs what `ACTIONS` names.

    The runs that match the filters are listed on a page first; those of that page are
    then changed, whatever matches by then.
    """
    back = redirect(get_list_url(request, "run"))
    chosen = find_selected_runs(request)
    if len(chosen) > MAX_SELECTED_RUNS:
        messages.error(
            request,
            _("Select at most %(count)s runs. Nothing was changed.")
            % {"count": MAX_SELECTED_RUNS},
        )
        return back
    visible = Run.objects.visible_to(request.user).select_related("agent", "spec")
    runs = list(visible.filter(pk__in=chosen).order_by("pk"))
    do = request.POST.get("do", "")
    if not runs:
        messages.error(request, _("Select runs in the list first."))
    elif wants_all(request) and do in CONFIRMED_ACTIONS:
        return confirm_action(request, do, runs)
    elif do not in ACTIONS:
        messages.error(request, _("Unknown action. Nothing was changed."))
    else:
        return ACTIONS[do](request, runs) or back
    return back


def wants_all(request: HtmxRequest) -> bool:
    """Whether all runs that match the filters of the list are meant."""
    return request.POST.get("all") == "1"


def find_selected_runs(request: HtmxRequest) -> set[int]:
    """Return the numbers of the selected runs, a few more than may be selected."""
    if not wants_all(request):
        chosen = {parse_whole_number(text) for text in request.POST.getlist("run")}
        return {one for one in chosen if one is not None}
    filters, _problems = read_filters(
        QueryDict(urlsplit(get_list_url(request, "run")).query)
    )
    queries = build_run_queries(
        Run.objects.visible_to(request.user), filters, user=request.user
    )
    found: set[int] = set()
    for query in queries:
        numbers = query.order_by("-pk").values_list("pk", flat=True)
        found.update(numbers[: MAX_SELECTED_RUNS + 1])
    return found


def confirm_action(request: HtmxRequest, do: str, runs: list[Run]) -> HttpResponse:
    """Show what would be changed, and how often."""
    context = {
        "question": format_question(do, len(runs)),
        "runs": runs,
        "do": do,
        "tag": request.POST.get("tag", ""),
        "here": get_list_url(request, "run"),
    }
    return render(request, "runs/confirm.html", context)


def format_question(do: str, count: int) -> str:
    match do:
        case "stop":
            text = ngettext("Stop %(count)s run?", "Stop %(count)s runs?", count)
        case "again":
            text = ngettext("Re-run %(count)s run?", "Re-run %(count)s runs?", count)
        case "tag":
            text = ngettext("Tag %(count)s run?", "Tag %(count)s runs?", count)
        case _:
            text = ngettext(
                "Keep %(count)s run forever?", "Keep %(count)s runs forever?", count
            )
    return text % {"count": number(count)}


def cancel_selected_runs(request: HtmxRequest, runs: list[Run]) -> None:
    done = sum(cancel_run(run, by=request.user) for run in runs)
    left = len(runs) - done
    if done:
        text = ngettext("Stopping %(count)s run.", "Stopping %(count)s runs.", done)
        messages.success(request, text % {"count": done})
    if left:
        text = ngettext(
            "%(count)s run not changed: already ended.",
            "%(count)s runs not changed: already ended.",
            left,
        )
        messages.info(request, text % {"count": left})


def resume_selected_runs(request: HtmxRequest, runs: list[Run]) -> HttpResponse | None:
    """Resume each run; show the limits first if some runs reached one."""
    resumable = [run for run in runs if run.can_resume]
    raised = {run.pk: propose_new_limits(run) for run in resumable}
    is_unsure = any(raised.values()) or wants_all(request)
    if is_unsure and not is_confirmed(request):
        context = {
            "rows": [(run, raised[run.pk]) for run in resumable],
            "left": len(runs) - len(resumable),
            "here": get_list_url(request, "run"),
        }
        return render(request, "runs/resume_selected.html", context)
    done, refusals = 0, Counter[str]()
    for run in resumable:
        try:
            resume_run(run, by=request.user, limits=build_new_limits(run))
        except RunsError as refused:
            refusals[str(refused)] += 1
        else:
            done += 1
    if done:
        text = ngettext("%(count)s run resumed.", "%(count)s runs resumed.", done)
        messages.success(request, text % {"count": done})
    for reason, count in refusals.items():
        text = ngettext(
            "%(count)s run not resumed: %(reason)s",
            "%(count)s runs not resumed: %(reason)s",
            count,
        )
        messages.error(request, text % {"count": count, "reason": reason})
    report_not_resumable(request, len(runs) - len(resumable))
    return None


def report_not_resumable(request: HtmxRequest, count: int) -> None:
    """Say how many of the selected runs are in no state to be resumed."""
    if count:
        text = ngettext(
            "%(count)s run not resumed: did not fail or reach a limit, or part of "
            "another run.",
            "%(count)s runs not resumed: did not fail or reach a limit, or part of "
            "another run.",
            count,
        )
        messages.info(request, text % {"count": count})


def propose_new_limits(run: Run) -> list[RaisableLimit]:
    """Return the limit that ended the run, doubled; nothing for a failed run."""
    return list_limits_to_raise(run, get_current_limits(run))


def build_new_limits(run: Run) -> dict[str, Any]:
    """Return the proposed limits as fields of `ExecutorOptions`."""
    proposed = {limit.name: limit.value for limit in propose_new_limits(run)}
    form = LimitsForm(get_current_limits(run), proposed)
    return form.changed_options() if proposed and form.is_valid() else {}


def rerun_selected_runs(request: HtmxRequest, runs: list[Run]) -> None:
    """Start the agent of each run with the same input; report refusals."""
    done = 0
    for run in runs:
        try:
            start_run(
                run.agent,
                by=request.user,
                inputs=run.inputs,
                draft=run.version_id is None,
                is_test=run.is_test,
                tool_mode=get_tool_mode(run),
            )
        except RunsError as refused:
            text = _("Run %(run)s was not re-run: %(reason)s")
            messages.error(request, text % {"run": run.pk, "reason": refused})
        else:
            done += 1
    if done:
        text = ngettext("%(count)s run started.", "%(count)s runs started.", done)
        messages.success(request, text % {"count": done})


def toggle_tag(request: HtmxRequest, runs: list[Run]) -> None:
    """Add a tag to each run, or remove it if all of them have it or `on` is 0."""
    name = " ".join(request.POST.get("tag", "").replace("\0", "").split())
    if not name or len(name) > 40:
        messages.error(
            request, _("Enter a tag of 1 to 40 characters. Nothing was changed.")
        )
        return
    rows = RunTag.objects.filter(run__in=runs, name=name)
    had = set(rows.values_list("run", flat=True))
    is_on = read_switch(request, default=len(had) < len(runs))
    if is_on:
        new = [RunTag(run=run, name=name) for run in runs]
        RunTag.objects.bulk_create(new, ignore_conflicts=True)
        text = ngettext(
            "Tag %(tag)s added to %(count)s run.",
            "Tag %(tag)s added to %(count)s runs.",
            len(runs),
        )
    else:
        rows.delete()
        text = ngettext(
            "Tag %(tag)s removed from %(count)s run.",
            "Tag %(tag)s removed from %(count)s runs.",
            len(runs),
        )
    text %= {"tag": name, "count": len(runs)}
    changed = [run for run in runs if (run.pk in had) != is_on]
    report_switched_runs(request, text, changed, is_on=is_on, tag=name)


def read_switch(request: HtmxRequest, *, default: bool) -> bool:
    """Return what `on` says, which an undo sends; otherwise the default."""
    return {"0": False, "1": True}.get(request.POST.get("on", ""), default)


def report_switched_runs(
    request: HtmxRequest, text: str, changed: list[Run], *, is_on: bool, **more: str
) -> None:
    """Say what was done; the undo switches back only the changed runs."""
    if not changed:
        messages.success(request, text)
        return
    add_message_with_undo(
        request,
        text,
        reverse("run-selection"),
        run=[str(run.pk) for run in changed],
        do=request.POST["do"],
        on="0" if is_on else "1",
        here=get_list_url(request, "run"),
        **more,
    )


def show_dataset_choice(request: HtmxRequest, runs: list[Run]) -> HttpResponse:
    context = {"form": RunsReceiverForm(request.user), "runs": runs}
    return render(request, "datasets/add_runs.html", context)


def offer_queues(request: HtmxRequest, runs: list[Run]) -> HttpResponse:
    """Show the annotation queues that the runs can be added to."""
    context = {"form": QueueRunsForm(request.user), "runs": runs}
    return render(request, "queues/add.html", context)


def toggle_keep_forever(request: HtmxRequest, runs: list[Run]) -> None:
    """Keep each run forever; if all of them are kept or `on` is 0, no longer."""
    keep = read_switch(request, default=not all(run.keep_forever for run in runs))
    changed = [run for run in runs if run.keep_forever != keep]
    count = keep_runs(runs, keep=keep, by=request.user)
    text = (
        ngettext(
            "%(count)s run is kept forever.", "%(count)s runs are kept forever.", count
        )
        if keep
        else ngettext(
            "%(count)s run is no longer kept forever.",
            "%(count)s runs are no longer kept forever.",
            count,
        )
    )
    text %= {"count": count}
    report_switched_runs(request, text, changed, is_on=keep)


def redirect_to_comparison(
    request: HtmxRequest, runs: list[Run]
) -> HttpResponse | None:
    if len(runs) != 2:
        messages.error(request, _("Select two runs to compare."))
        return None
    first, second = sorted(run.pk for run in runs)
    return redirect(f"{reverse('run-compare')}?a={first}&b={second}")


def delete_selected_runs(request: HtmxRequest, runs: list[Run]) -> HttpResponse | None:
    """Show a confirmation first; then delete the ended runs."""
    over = [
        run
        for run in runs
        if run.status in FINISHED_STATUSES and run.parent_step_id is None
    ]
    if not is_confirmed(request):
        context = {
            "runs": over,
            "left": len(runs) - len(over),
            "here": get_list_url(request, "run"),
        }
        return render(request, "runs/delete.html", context)
    done = delete_runs(runs, by=request.user)
    left = len(runs) - done
    if done:
        text = ngettext("%(count)s run deleted.", "%(count)s runs deleted.", done)
        messages.success(request, text % {"count": done})
    if left:
        text = ngettext(
            "%(count)s run not deleted: not ended, or part of another run.",
            "%(count)s runs not deleted: not ended, or part of another run.",
            left,
        )
        messages.info(request, text % {"count": left})
    return None


ACTIONS: dict[str, Callable[[HtmxRequest, list[Run]], HttpResponse | None]] = {
    "stop": cancel_selected_runs,
    "resume": resume_selected_runs,
    "again": rerun_selected_runs,
    "tag": toggle_tag,
    "keep": toggle_keep_forever,
    "dataset": show_dataset_choice,
    "queue": offer_queues,
    "compare": redirect_to_comparison,
    "delete": delete_selected_runs,
}
"""What can be done with runs; without a response, the list is shown again."""
