"""What the templates of the run page get: the whole page, a pane, a window of rows."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from django.db.models import QuerySet
from django.urls import reverse
from django.utils.safestring import SafeString

from runs.models import Run
from runs.views.plain_words import cut
from runs.views.run_banner import banner_of
from runs.views.run_children import above_of
from runs.views.run_choice import Choice, choice_of
from runs.views.run_detail import (
    Chosen,
    Place,
    Tab,
    answer_of,
    in_bytes,
    newest_place,
    place_of,
    raw_request,
    raw_response,
    readable,
    tool_tab,
)
from runs.views.run_prompt import prompt_tab
from runs.views.run_rows import NO_SIGN, Bar, Tag, attempt_bars, drawn, next_number
from runs.views.run_state import RunState, context_of, state_of
from runs.views.run_times import timeline_of
from runs.views.run_turns import earlier_turns
from runs.views.run_window import count_found, counts_of, has_failed_call, window_of
from runs.views.timeline import Timeline, percent


class NowRow(NamedTuple):
    """The line of the model call that has no record yet."""

    number: int
    bar: Bar | None
    words: str = "The model is asked"
    failed: tuple[Bar, ...] = ()
    """Attempts that failed, and the waits after them."""
    seconds: float | None = None
    """Since the work before it, or what its attempts took."""
    tag: Tag | None = None

    @property
    def drawing(self) -> SafeString:
        """The bars of what failed before."""
        return drawn(self.failed)


class Pane(NamedTuple):
    """The right side: its head, its tabs, and the part that fills it."""

    title: str
    icon: str
    template: str = ""
    tabs: tuple[Tab, ...] = ()
    tab: str = ""
    is_answer: bool = False
    can_play: bool = False
    """Whether it is a model call, which a playground can repeat."""


RAW_SHOWN = 60_000
"""Characters of raw JSON on a page; the rest is in the file."""

PARTS = {
    "readable": "runs/_readable.html",
    "prompt": "runs/_prompt.html",
    "request": "runs/_raw.html",
    "response": "runs/_raw.html",
    "tool": "runs/_tool.html",
    "attempts": "runs/_attempts.html",
}


def loaded(runs: "QuerySet[Run]") -> "QuerySet[Run]":
    """Return runs with the rows their page shows."""
    return runs.select_related(
        "agent",
        "version",
        "worker",
        "owner",
        "spec",
        "cancelled_by",
        "conversation",
        "parent_step__model_call",
        "schedule",
    ).defer("schedule__inputs")


def page_context(run: Run, asked: Mapping[str, str]) -> dict[str, Any]:
    """Return everything on the page."""
    timeline, choice = timeline_of(run), opened(run, choice_of(asked))
    state = state_of(run, timeline)
    context = {
        **steps_context(state, choice),
        **detail_context(state, choice, asked),
        "banner": banner_of(state),
        "above": above_of(run),
    }
    context["view"] = 1 if shows_steps(state, asked) else 2
    return context


def opened(run: Run, choice: Choice) -> Choice:
    """Open the step that failed, where a failed run's page asks for none."""
    is_asked = choice.step is not None or choice.before or choice.after
    if run.status != Run.Status.FAILED or is_asked or choice.is_filtered:
        return choice
    if has_failed_call(run):
        return replace(choice, step=next_number(run))
    return replace(choice, step=next_number(run) - 1 or None)


def shows_steps(state: RunState, asked: Mapping[str, str]) -> bool:
    """Whether a phone, which shows one pane, shows the steps."""
    if "view" in asked:
        return asked["view"] == "steps"
    if any(asked.get(name) for name in ("show", "q", "as", "before", "after")):
        return "step" not in asked
    return "step" not in asked and not state.run.is_over


def pane_context(run: Run, asked: Mapping[str, str]) -> dict[str, Any]:
    """Return the right side alone."""
    state, choice = state_of(run, Timeline(run.started_at)), choice_of(asked)
    kept = {"kept": choice.kept, "search": choice.search}
    return {**kept, **detail_context(state, choice, asked)}


def list_context(run: Run, asked: Mapping[str, str]) -> dict[str, Any]:
    """Return the left side alone: other filters, another search."""
    state, choice = state_of(run, timeline_of(run)), choice_of(asked)
    is_following = choice.step is None and not run.is_over
    return steps_context(state, choice) | {
        "chosen_number": choice.step,
        "following": is_following,
    }


def steps_context(state: RunState, choice: Choice) -> dict[str, Any]:
    """Return what the left side shows."""
    run, timeline = state.run, state.timeline
    counts = counts_of(run)
    return {
        **context_of(state),
        **rows_context(run, timeline, choice),
        "chips": choice.chips(counts),
        "found": count_found(run, timeline, choice) if choice.search else None,
        "has_errors": counts.errors > 0,
        "total": counts.of(""),
        "now_row": now_row(state),
    }


def rows_context(run: Run, timeline: Timeline, choice: Choice) -> dict[str, Any]:
    """Return a window of rows, and how it is gone on from."""
    window = window_of(run, timeline, choice)
    return {
        "run": run,
        "choice": choice,
        "kept": choice.kept,
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
    state: RunState, choice: Choice, asked: Mapping[str, str]
) -> dict[str, Any]:
    """Return the chosen step in its tab, or the newest, or the answer."""
    run = state.run
    place = place_of(run, choice.step) if choice.step else None
    if place is not None:
        is_whole, tab = "all" in asked, asked.get("tab", "")
        step = step_context(run, place, tab, is_whole=is_whole)
        return {**context_of(state), **step}
    if choice.step == 0 or run.is_over:
        return answer_context(state)
    return follow_context(state)


def answer_context(state: RunState) -> dict[str, Any]:
    """Return the pane of the answer."""
    run = state.run
    title = "Answer" if run.is_over else "Whole run"
    return {
        **context_of(state),
        "chosen_number": 0,
        "following": False,
        "answer": answer_of(run),
        "turns": earlier_turns(run),
        "pane": Pane(title, "answer", is_answer=True),
    }


def follow_context(state: RunState) -> dict[str, Any]:
    """Return the pane that follows the newest step."""
    run = state.run
    context: dict[str, Any] = {
        **context_of(state),
        "chosen_number": None,
        "followed_number": next_number(run),
        "following": True,
        "now_row": now_row(state),
    }
    if state.has_open_call:
        title = f"Step {next_number(run)} · model call"
        return context | {"pane": Pane(title, "model")}
    place = newest_place(run)
    if place is None:
        return context | {"pane": Pane("Newest step", "model")}
    return context | {
        "followed_number": place.number,
        "pane": Pane(place.title, place.icon),
        "chosen": readable(run, place),
    }


def step_context(
    run: Run, place: Place, tab: str, *, is_whole: bool = False
) -> dict[str, Any]:
    """Return the pane of a chosen row."""
    tabs = place.tabs
    names = [one.name for one in tabs]
    tab = tab if tab in names else names[0]
    return {
        "run": run,
        "chosen_number": place.number,
        "following": False,
        "pane": Pane(
            place.title,
            place.icon,
            PARTS[tab],
            tuple(tabs),
            tab,
            can_play=place.step is None and place.call is not None,
        ),
        **tab_context(run, place, tab, is_whole=is_whole),
    }


def tab_context(run: Run, place: Place, tab: str, *, is_whole: bool) -> dict[str, Any]:
    """Return what one tab shows."""
    match tab:
        case "prompt":
            return {"prompt": prompt_tab(run, place, is_whole=is_whole)}
        case "request" | "response":
            return {"raw": raw_tab(run, place, tab)}
        case "tool":
            return {"tool": tool_tab(run, place)}
        case "attempts":
            return {"attempts": place.attempts}
        case _:
            chosen: Chosen = readable(run, place)
            return {"chosen": chosen}


def raw_tab(run: Run, place: Place, tab: str) -> dict[str, Any]:
    """Return a request or a reply as JSON, its beginning where it is long."""
    if tab == "request":
        text, note, size = raw_request(run, place, most=RAW_SHOWN + 1)
        rest = f"The whole body has {in_bytes(size)}."
    else:
        text, note = raw_response(place)
        rest = f"{len(text) - RAW_SHOWN:,} more characters."
    return {
        "text": text[:RAW_SHOWN],
        "note": note,
        "title": f"run-{run.pk}-step-{place.number}-{tab}.json",
        "url": reverse("run-raw", args=[run.pk, place.number, tab]),
        "cut": rest if len(text) > RAW_SHOWN else "",
    }


def now_row(state: RunState) -> NowRow:
    """Return the line of what happens now."""
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
        bar = Bar(tone, percent(start), percent(length))
    number, words = next_number(state.run), state.asking
    words = f"{words[0].upper()}{words[1:]}"
    if not state.failed:
        return NowRow(number, bar, words, seconds=length, tag=tag_of(state))
    words = cut(f"{words}. The last one: {state.failed[-1].message}")
    failed = tuple(attempt_bars(state.failed, timeline))
    return NowRow(number, bar, words, failed, length, tag_of(state))


def tag_of(state: RunState) -> Tag:
    """Say beside the model call without a record whether anyone is on it."""
    if state.is_lost:
        return Tag(*NO_SIGN)
    if state.is_working:
        return Tag("live", "live")
    return Tag("queued" if state.run.status == Run.Status.QUEUED else "waits")
