"""The page that publishes a draft: its gate, a replay of real inputs, the changes."""

from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST

from runs.htmx import HtmxRequest, get_return_url, render_page_or_part, wants_part
from runs.models import Agent, AgentVersion, Example, Experiment, Run, Schedule
from runs.models.runs import UNFINISHED_STATUSES
from runs.services.agents.publish import (
    MIN_REASON_CHARS,
    get_latest_version,
    publish_again,
    publish_draft,
)
from runs.services.agents.save import get_draft_token
from runs.services.errors import GateNotMet, RunsError
from runs.services.gates.replay import (
    MAX_REPLAYED,
    ReplayReport,
    find_changed_tools,
    load_input_replay,
    start_input_replay,
)
from runs.services.gates.run import start_gate_experiment
from runs.services.gates.state import (
    GateState,
    get_gate,
    load_gate_state,
    load_version_gate_state,
)
from runs.store.specs import compute_spec_digest, dump_spec
from runs.ui.evaluation.gate_labels import (
    CHANGE_LABELS,
    CHANGE_TONES,
    Regressions,
    describe_gate,
    describe_replayed_run,
    explain_unmet_rule,
    list_gate_lines,
    list_replay_parts,
)
from runs.ui.format import number
from runs.ui.frame.undo import add_message_with_undo
from runs.views.agents.kind_suggestion import warn_of_unlisted_model
from runs.views.agents.versions import list_changes_since, load_agent_state
from runs.views.experiments.example_results import load_example_results
from runs.views.experiments.progress import load_progress
from runs.views.experiments.table import filter_results
from runs.whole_number import parse_whole_number

MAX_NOTE_CHARS = 200
API_DAYS = 7
"""Of which the page counts the runs that the API started."""
MAX_REASON_CHARS = 2_000


@require_http_methods(["GET", "POST"])
def agent_publish(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show what publishing changes; publish the draft as a new version."""
    agent = get_object_or_404(Agent.objects.editable_by(request.user), pk=pk)
    if agent.is_playground:
        return redirect("playground")
    if request.method != "POST":
        return render_publish_page(request, agent)
    note, reason = read_note_and_reason(request)
    seen = request.POST.get("seen")  # the form of the editor always sends one
    try:
        version, is_new = publish_draft(
            agent, by=request.user, note=note, seen=seen, reason=reason
        )
    except GateNotMet as refused:
        error = run_missing_gate(request, agent) or str(refused)
        more = {"note": note, "reason": reason, "error": error}
        return render_publish_page(request, agent, more)
    except RunsError as error:
        messages.error(request, str(error))
        return redirect("agent-edit", pk=pk)
    page = reverse("agent-detail", args=[pk])
    if is_new:
        say_published(request, version, here=page)
    else:
        text = _("Not published: nothing has changed since version %(number)s.")
        messages.success(request, text % {"number": version.number})
    warn_of_unlisted_model(request, agent)
    return redirect(page)


def say_published(request: HtmxRequest, version: AgentVersion, *, here: str) -> None:
    """Say that runs use a version; its undo publishes the one before again.

    The undo leads to the page `here`.
    """
    text = _("Version %(number)s published. Runs use it from now on.")
    text %= {"number": version.number}
    earlier = AgentVersion.objects.filter(
        agent=version.agent_id, number__lt=version.number
    ).first()
    if earlier is None:
        messages.success(request, text)
        return
    url = reverse("agent-publish-again", args=[version.agent_id, earlier.number])
    newest = str(version.number)
    add_message_with_undo(request, text, url, newest=newest, undo="1", here=here)


@require_http_methods(["GET", "POST"])
def agent_publish_again(request: HtmxRequest, pk: int, number: int) -> HttpResponse:
    """Ask for a note, then publish an older version as a new one."""
    agent = get_object_or_404(Agent.objects.editable_by(request.user), pk=pk)
    version = get_object_or_404(agent.versions.select_related("spec"), number=number)
    newest = get_latest_version(agent)
    assert newest is not None
    if newest.pk == version.pk:
        messages.info(request, _("Runs use version %(n)d already.") % {"n": number})
        return redirect("agent-versions", pk=pk)
    if request.method != "POST":
        return render_publish_again_page(request, version, newest)
    note, reason = read_note_and_reason(request)
    try:
        again = publish_again(
            version,
            by=request.user,
            newest=parse_whole_number(request.POST.get("newest", "")) or 0,
            note=note,
            reason=reason,
        )
    except GateNotMet as refused:
        more = {"note": note, "reason": reason, "error": str(refused)}
        return render_publish_again_page(request, version, newest, more)
    except RunsError as refused:
        messages.error(request, str(refused))
        return redirect("agent-versions", pk=pk)
    page = get_return_url(request, reverse("agent-versions", args=[pk]))
    if "undo" in request.POST:
        text = _(
            "Publishing undone. Runs use the content of version %(earlier)s again, as "
            "version %(number)s."
        )
        messages.success(request, text % {"earlier": number, "number": again.number})
    else:
        say_published(request, again, here=page)
    return redirect(page)


def render_publish_again_page(
    request: HtmxRequest,
    version: AgentVersion,
    newest: AgentVersion,
    more: dict[str, Any] | None = None,
) -> HttpResponse:
    """Show the page; its part polls while the gate runs, and then frees the form."""
    agent = version.agent
    state = load_version_gate_state(version)
    visible = Experiment.objects.visible_to(request.user)
    context = {
        "agent": agent,
        "version": version,
        "newest": newest,
        "next_number": newest.number + 1,
        "has_tools": bool(version.spec.body.get("tools")),
        "state": state,
        **build_gate_context(state),
        "may_open": state.experiment is not None
        and visible.filter(pk=state.experiment.pk).exists(),
        "cancel_url": reverse("agent-versions", args=[agent.pk]),
        "is_update": wants_part(request),
    }
    page, part = "gates/publish_again.html", "gates/_version_gate.html"
    if more is not None:
        return render(request, page, context | more)
    return render_page_or_part(request, page, part, context)


def read_note_and_reason(request: HtmxRequest) -> tuple[str, str]:
    note, reason = (
        request.POST.get(name, "").replace("\0", "").strip()[:limit]
        for name, limit in (("note", MAX_NOTE_CHARS), ("reason", MAX_REASON_CHARS))
    )
    return note, reason


@require_POST
def agent_gate_run(request: HtmxRequest, pk: int) -> HttpResponse:
    """Run the experiment of the gate with the draft as it is now, or a `candidate`."""
    agent = get_object_or_404(Agent.objects.editable_by(request.user), pk=pk)
    gate = get_gate(agent)
    candidate = request.POST.get("candidate", "")
    number = parse_whole_number(candidate)
    if gate is not None:
        try:
            experiment = start_gate_experiment(
                gate, by=request.user, candidate=candidate
            )
        except RunsError as refused:
            messages.error(request, str(refused))
        else:
            messages.success(request, describe_gate_start(experiment))
    if number is not None and agent.versions.filter(number=number).exists():
        return redirect("agent-publish-again", pk=pk, number=number)
    return redirect("agent-publish", pk=pk)


@require_POST
def agent_input_replay(request: HtmxRequest, pk: int) -> HttpResponse:
    """Replay the last real inputs with the draft; nothing is sent."""
    agent = get_object_or_404(Agent.objects.editable_by(request.user), pk=pk)
    count = parse_whole_number(request.POST.get("count", "")) or 0
    if not 1 <= count <= MAX_REPLAYED:
        messages.error(
            request,
            _("Enter a number of inputs from 1 to %(limit)d.")
            % {"limit": MAX_REPLAYED},
        )
        return redirect("agent-publish", pk=pk)
    try:
        replay = start_input_replay(agent, by=request.user, count=count)
    except RunsError as refused:
        messages.error(request, str(refused))
    else:
        if replay is None:
            messages.warning(
                request,
                _("No published version has been run with inputs that the draft has."),
            )
    return redirect("agent-publish", pk=pk)


def run_missing_gate(request: HtmxRequest, agent: Agent) -> str:
    """Start the gate's experiment if this draft has none; return what to say of it."""
    state = load_draft_gate(agent)
    if state.status != "missing" or state.gate is None or request.POST.get("reason"):
        return ""
    try:
        return describe_gate_start(start_gate_experiment(state.gate, by=request.user))
    except RunsError as refused:
        return str(refused)


def describe_gate_start(experiment: Experiment) -> str:
    return ngettext(
        "The experiment of the gate was started: %(count)s run. Publish when it has "
        "ended.",
        "The experiment of the gate was started: %(count)s runs. Publish when it has "
        "ended.",
        experiment.total,
    ) % {"count": number(experiment.total)}


def load_draft_gate(agent: Agent) -> GateState:
    return load_gate_state(agent, load_agent_state(agent, None).spec)


def render_publish_page(
    request: HtmxRequest, agent: Agent, more: dict[str, Any] | None = None
) -> HttpResponse:
    """Show the page; its part polls while something runs, and then frees the form."""
    context = build_publish_context(request, agent) | (more or {})
    if more is not None:
        return render(request, "gates/publish.html", context)
    return render_page_or_part(
        request, "gates/publish.html", "gates/_checked.html", context
    )


def build_publish_context(request: HtmxRequest, agent: Agent) -> dict[str, Any]:
    """Return what the page shows without a form that was sent."""
    newest, draft = get_latest_version(agent), load_agent_state(agent, None)
    digest = compute_spec_digest(dump_spec(draft.spec))
    state = load_gate_state(agent, draft.spec, digest=digest)
    replay = load_input_replay(agent, digest, by=request.user)
    is_running = state.status == "running" or bool(replay and replay.is_running)
    visible = Experiment.objects.visible_to(request.user)
    return {
        "agent": agent,
        "newest": newest,
        "next_number": newest.number + 1 if newest else 1,
        "token": get_draft_token(agent),
        "cancel_url": reverse("agent-edit", args=[agent.pk]),
        "state": state,
        "is_running": is_running,
        "gate_progress": load_progress(state.experiment)
        if state.experiment and state.status == "running"
        else None,
        **build_gate_context(state),
        "gate_lines": list_gate_lines(state.result, find_regressions(state))
        if state.result
        else [],
        "may_open": state.experiment is not None
        and visible.filter(pk=state.experiment.pk).exists(),
        "replay": replay,
        "max_replayed": MAX_REPLAYED,
        "replay_changed_tools": find_changed_tools(agent, draft.spec, by=request.user),
        **build_replay_context(replay, request.GET.get("show", "")),
        "differences": list_changes_since(agent, newest, draft),
        "effects": count_effects(request, agent),
    }


def build_gate_context(state: GateState) -> dict[str, Any]:
    """Return what the form says of the gate."""
    result = state.result
    return {
        "gate_words": describe_gate(result) if result else "",
        "unmet": [explain_unmet_rule(rule) for rule in result.unmet] if result else [],
        "min_reason": MIN_REASON_CHARS,
    }


def find_regressions(state: GateState) -> Regressions:
    """Return what got worse in the experiment of a gate that is not met."""
    if state.status != "not_met" or state.experiment is None:
        return Regressions()
    rows = state.experiment.candidates.order_by("position")
    order = list(rows.values_list("pk", flat=True))
    worse = filter_results(load_example_results(state.experiment, order), "worse")
    tags = Example.objects.filter(pk__in=[one.pk for one in worse])
    shared = [set(each) for each in tags.values_list("tags", flat=True)]
    return Regressions(
        len(worse), tuple(sorted(set.intersection(*shared))) if shared else ()
    )


def build_replay_context(replay: ReplayReport | None, shown: str) -> dict[str, Any]:
    """Return the rows of the replay that a filter shows; all that changed without."""
    if replay is None:
        return {}
    counts = replay.counts
    shown = shown if shown in CHANGE_LABELS and counts[shown] else ""
    rows = [
        (one, CHANGE_LABELS[one.change], CHANGE_TONES.get(one.change, ""))
        for one in replay.runs
        if one.change == shown or (not shown and one.change != "same")
    ]
    return {
        "shown": shown,
        "parts": list_replay_parts(counts),
        "changed_count": len(replay.runs) - counts["same"],
        "replay_rows": [(*row, describe_replayed_run(row[0])) for row in rows],
    }


def count_effects(request: HtmxRequest, agent: Agent) -> dict[str, int]:
    """Return how many runs, schedules and API calls a new version concerns."""
    runs = Run.objects.visible_to(request.user).filter(agent=agent)
    schedules = Schedule.objects.filter(agent=agent, next_at__isnull=False)
    unfinished = runs.filter(status__in=UNFINISHED_STATUSES, is_test=False)
    since = timezone.now() - timedelta(days=API_DAYS)
    calls = runs.filter(source=Run.Source.API, created_at__gt=since)
    return {
        "runs": unfinished.count(),
        "schedules": schedules.count(),
        "api_calls": calls.count(),
    }
