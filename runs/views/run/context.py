"""Template contexts of the run page: the page, a pane, a window of rows."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from django.db.models import QuerySet
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from runs.models import Run
from runs.ui.summaries import truncate_line
from runs.ui.time_scale import Timeline, format_percent
from runs.views.run.banner import build_banner
from runs.views.run.children import list_ancestors
from runs.views.run.conversation import list_earlier_turns
from runs.views.run.params import RunPageParams, parse_run_page_params
from runs.views.run.prompt import prompt_tab_context
from runs.views.run.raw_request import build_raw_request, build_raw_response
from runs.views.run.rows import (
    NO_HEARTBEAT_TAG,
    RowTag,
    TimelineBar,
    build_attempt_bars,
    get_next_row_number,
    render_bars,
)
from runs.views.run.state import RunState, load_run_state, run_state_context
from runs.views.run.step_detail import (
    ReadableTab,
    RowRecord,
    Tab,
    build_readable_tab,
    final_answer_context,
    find_newest_record,
    find_row_record,
    format_byte_size,
    format_more_characters,
    tool_tab_context,
)
from runs.views.run.timeline import load_timeline
from runs.views.run.window import (
    count_matching_rows,
    count_rows,
    has_failed_call,
    load_row_window,
)


class PendingCallRow(NamedTuple):
    """The row of the model call that has no record yet."""

    number: int
    bar: TimelineBar | None
    words: str
    failed: tuple[TimelineBar, ...] = ()
    """Bars of failed attempts and the waits after them."""
    seconds: float | None = None
    """Since the end of the work before it, or the duration of its attempts."""
    tag: RowTag | None = None

    @property
    def drawing(self) -> SafeString:
        """The bars of failed attempts as SVG."""
        return render_bars(self.failed)


class Pane(NamedTuple):
    """The right pane: its title, its tabs, and the template that fills it."""

    title: str
    icon: str
    template: str = ""
    tabs: tuple[Tab, ...] = ()
    tab: str = ""
    is_answer: bool = False
    can_play: bool = False
    """Whether it is a model call, which the playground can repeat."""


RAW_SHOWN = 60_000
"""Characters of raw JSON on a page; the download has all of them."""

TAB_TEMPLATES = {
    "readable": "runs/_readable.html",
    "prompt": "runs/_prompt.html",
    "request": "runs/_raw.html",
    "response": "runs/_raw.html",
    "tool": "runs/_tool.html",
    "attempts": "runs/_attempts.html",
}


def select_page_relations(runs: "QuerySet[Run]") -> "QuerySet[Run]":
    """Return runs with the related rows that their page shows."""
    return runs.select_related(
        "agent",
        "version",
        "worker",
        "waiting_provider",
        "owner",
        "spec",
        "canceled_by",
        "conversation",
        "parent_step__model_call",
        "schedule",
    ).defer("schedule__inputs")


def page_context(run: Run, asked: Mapping[str, str]) -> dict[str, Any]:
    timeline, choice = (
        load_timeline(run),
        open_failed_step(run, parse_run_page_params(asked)),
    )
    state = load_run_state(run, timeline)
    context = {
        **steps_context(state, choice),
        **detail_context(state, choice, asked),
        "banner": build_banner(state),
        "above": list_ancestors(run),
    }
    context["view"] = 1 if shows_steps_pane(state, asked) else 2
    return context


def open_failed_step(run: Run, choice: RunPageParams) -> RunPageParams:
    """Open the failed step of a failed run, unless another one is selected."""
    is_asked = choice.step is not None or choice.before or choice.after
    if run.status != Run.Status.FAILED or is_asked or choice.is_filtered:
        return choice
    if has_failed_call(run):
        return replace(choice, step=get_next_row_number(run))
    return replace(choice, step=get_next_row_number(run) - 1 or None)


def shows_steps_pane(state: RunState, asked: Mapping[str, str]) -> bool:
    """Whether a phone, which shows one pane at a time, shows the steps."""
    if "view" in asked:
        return asked["view"] == "steps"
    if any(asked.get(name) for name in ("show", "q", "as", "before", "after")):
        return "step" not in asked
    return "step" not in asked and not state.run.is_over


def pane_context(run: Run, asked: Mapping[str, str]) -> dict[str, Any]:
    state, choice = (
        load_run_state(run, Timeline(run.started_at)),
        open_failed_step(run, parse_run_page_params(asked)),
    )
    kept = {"choice": choice, "kept": choice.row_query, "search": choice.search}
    return {**kept, **detail_context(state, choice, asked)}


def list_context(run: Run, asked: Mapping[str, str]) -> dict[str, Any]:
    """Return the context of the left pane after a filter or search."""
    state, choice = (
        load_run_state(run, load_timeline(run)),
        parse_run_page_params(asked),
    )
    is_following = choice.step is None and not run.is_over
    return steps_context(state, choice) | {
        "selected_number": choice.step,
        "following": is_following,
    }


def steps_context(state: RunState, choice: RunPageParams) -> dict[str, Any]:
    run, timeline = state.run, state.timeline
    counts = count_rows(run)
    return {
        **run_state_context(state),
        **rows_context(run, timeline, choice),
        "chips": choice.chips(counts),
        "found": count_matching_rows(run, timeline, choice) if choice.search else None,
        "has_errors": counts.errors > 0,
        "total": counts.count_for(""),
        "pending_row": pending_row(state),
    }


def rows_context(run: Run, timeline: Timeline, choice: RunPageParams) -> dict[str, Any]:
    """Return a window of rows, and where the next ones begin."""
    window = load_row_window(run, timeline, choice)
    return {
        "run": run,
        "choice": choice,
        "kept": choice.row_query,
        "search": choice.search,
        "as_list": choice.query(**{"as": ""}),
        "as_time": choice.query(**{"as": "time"}),
        "rows": window.rows,
        "earlier": window.earlier,
        "earlier_count": None if choice.is_filtered else (window.earlier or 1) - 1,
        "later": window.later,
        "is_window": choice.before is not None or choice.after is not None,
    }


def detail_context(
    state: RunState, choice: RunPageParams, asked: Mapping[str, str]
) -> dict[str, Any]:
    """Return the selected step in its tab, the newest step, or the answer."""
    run = state.run
    place = find_row_record(run, choice.step) if choice.step else None
    if place is not None:
        is_whole, tab = "all" in asked, asked.get("tab", "")
        step = step_context(run, place, tab, is_whole=is_whole)
        return {**run_state_context(state), **step}
    if choice.step == 0 or run.is_over:
        return answer_context(state)
    return follow_context(state)


def answer_context(state: RunState) -> dict[str, Any]:
    run = state.run
    title = _("Answer") if run.is_over else _("Whole run")
    return {
        **run_state_context(state),
        "selected_number": 0,
        "following": False,
        "answer": final_answer_context(run),
        "turns": list_earlier_turns(run),
        "pane": Pane(title, "answer", is_answer=True),
    }


def follow_context(state: RunState) -> dict[str, Any]:
    run = state.run
    context: dict[str, Any] = {
        **run_state_context(state),
        "selected_number": None,
        "followed_number": get_next_row_number(run),
        "following": True,
        "pending_row": pending_row(state),
    }
    if state.has_open_call:
        title = _("Step %(number)s · model call") % {"number": get_next_row_number(run)}
        return context | {"pane": Pane(title, "model")}
    place = find_newest_record(run)
    if place is None:
        return context | {"pane": Pane(_("Latest step"), "model")}
    return context | {
        "followed_number": place.number,
        "pane": Pane(place.title, place.icon),
        "chosen": build_readable_tab(run, place),
    }


def step_context(
    run: Run, place: RowRecord, tab: str, *, is_whole: bool = False
) -> dict[str, Any]:
    tabs = place.tabs
    names = [one.name for one in tabs]
    tab = tab if tab in names else names[0]
    return {
        "run": run,
        "selected_number": place.number,
        "following": False,
        "pane": Pane(
            place.title,
            place.icon,
            TAB_TEMPLATES[tab],
            tuple(tabs),
            tab,
            can_play=place.step is None and place.call is not None,
        ),
        **tab_context(run, place, tab, is_whole=is_whole),
    }


def tab_context(
    run: Run, place: RowRecord, tab: str, *, is_whole: bool
) -> dict[str, Any]:
    match tab:
        case "prompt":
            return {"prompt": prompt_tab_context(run, place, is_whole=is_whole)}
        case "request" | "response":
            return {"raw": raw_tab_context(run, place, tab)}
        case "tool":
            return {"tool": tool_tab_context(run, place)}
        case "attempts":
            return {"attempts": place.attempts}
        case _:
            chosen: ReadableTab = build_readable_tab(run, place)
            return {"chosen": chosen}


def raw_tab_context(run: Run, place: RowRecord, tab: str) -> dict[str, Any]:
    """Return a request or a reply as JSON, cut if it is long."""
    head = ""
    if tab == "request":
        text, note, head, size = build_raw_request(run, place, most=RAW_SHOWN + 1)
        rest = _("The whole body has %(size)s.") % {"size": format_byte_size(size)}
    else:
        text, note = build_raw_response(place)
        rest = format_more_characters(len(text) - RAW_SHOWN)
    return {
        "text": text[:RAW_SHOWN],
        "note": note,
        "head": head,
        "title": f"run-{run.pk}-step-{place.number}-{tab}.json",
        "url": reverse("run-raw", args=[run.pk, place.number, tab]),
        "cut": rest if len(text) > RAW_SHOWN else "",
    }


def pending_row(state: RunState) -> PendingCallRow:
    timeline = state.timeline
    last = timeline.last or timeline.began
    bar, length = None, None
    if not state.is_asking:
        length = sum(one.elapsed for one in state.failed)
        length += sum(one.retry_in or 0 for one in state.failed[:-1])
    elif last is not None:
        start = timeline.at(last)
        length = max(state.seconds - start, 0)
        tone = "cut" if state.is_lost else "live"
        bar = TimelineBar(tone, format_percent(start), format_percent(length))
    number, words = get_next_row_number(state.run), state.call_progress_text
    if not state.failed:
        return PendingCallRow(
            number, bar, words, seconds=length, tag=get_pending_tag(state)
        )
    if not state.is_writing:
        values = {"progress": words, "error": state.failed[-1].message}
        words = truncate_line(_("%(progress)s. Last error: %(error)s") % values)
    failed = tuple(build_attempt_bars(state.failed, timeline))
    return PendingCallRow(number, bar, words, failed, length, get_pending_tag(state))


def get_pending_tag(state: RunState) -> RowTag:
    """Return whether a worker waits for the model call without a record."""
    if state.is_lost:
        text, tone = NO_HEARTBEAT_TAG
        return RowTag(str(text), tone)
    if state.is_working:
        return RowTag(_("live"), "live")
    is_queued = state.run.status == Run.Status.QUEUED
    return RowTag(_("queued") if is_queued else _("waiting"))
