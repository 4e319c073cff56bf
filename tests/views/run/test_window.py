"""Windows of a run's rows: filters, search, earlier and later ones."""

from datetime import timedelta

import pytest
from django.utils import timezone

from runs.models import ModelAttempt
from runs.views.run.params import RunPageParams, parse_run_page_params
from runs.views.run.timeline import load_timeline
from runs.views.run.window import WINDOW, count_rows, find_next_error, load_row_window
from tests.make import make_call, make_run, make_step, make_user

pytestmark = pytest.mark.django_db

BEGAN = timezone.now() - timedelta(hours=1)


def attempt(run, **fields):
    """Make a failed attempt of the call that comes next."""
    defaults = {
        "number": run.next_number,
        "attempt": 1,
        "code": "timeout",
        "message": "The server sent nothing.",
        "started_at": BEGAN + timedelta(seconds=60),
        "elapsed": 5.0,
        "created_seq": 1,
    }
    return ModelAttempt.objects.create(run=run, **{**defaults, **fields})


def long_run(rounds, **fields):
    """Make a run of as many calls as steps."""
    run = make_run(make_user(), **{"status": "running", "started_at": BEGAN, **fields})
    for number in range(rounds):
        at = BEGAN + timedelta(seconds=2 * number)
        make_call(run, started_at=at, elapsed=1.0)
        make_step(run, started_at=at + timedelta(seconds=1), duration=0.5)
    return run


def numbers(run, **choice):
    """Return the numbers of the rows that a choice shows."""
    return [row.number for row in window(run, **choice).rows]


def window(run, **choice):
    return load_row_window(run, load_timeline(run), RunPageParams(**choice))


def test_shows_the_newest_rows_of_a_run_that_is_not_over():
    run = long_run(80)
    shown = window(run)

    assert [row.number for row in shown.rows] == list(range(61, 161))
    assert (shown.earlier, shown.later) == (61, None)


def test_a_run_that_went_well_begins_at_its_beginning():
    run = long_run(80, status="succeeded")
    shown = window(run)

    assert [row.number for row in shown.rows] == list(range(1, WINDOW + 1))
    assert (shown.earlier, shown.later) == (None, WINDOW)
    assert numbers(run, after=WINDOW) == list(range(WINDOW + 1, 161))


def test_a_link_to_a_step_shows_the_rows_around_it():
    run = long_run(150)
    shown = window(run, step=150)

    assert [row.number for row in shown.rows] == list(range(100, 200))
    assert (shown.earlier, shown.later) == (100, 199)


@pytest.mark.parametrize(
    ("show", "left"),
    [
        pytest.param("model", [1, 3, 5], id="model calls"),
        pytest.param("tools", [2, 4, 6], id="tool calls"),
        pytest.param("errors", [4], id="errors"),
        pytest.param("", [1, 2, 3, 4, 5, 6], id="all"),
    ],
)
def test_a_filter_leaves_one_kind_of_rows(show, left):
    run = long_run(1)
    make_call(run)
    make_step(run, status="failed", observation="No such word.")
    make_call(run)
    make_step(run)

    assert numbers(run, show=show) == left
    assert count_rows(run).count_for(show) == len(left)


@pytest.mark.parametrize(
    ("words", "left"),
    [
        pytest.param("颐和园", [2], id="in the input, which may be stored escaped"),
        pytest.param("nothing THERE", [4], id="in the observation, in any case"),
        pytest.param("let me see", [3], id="in the reply"),
        pytest.param("opening_hours", [2], id="in the tool's name"),
        pytest.param("100 %", [], id="nowhere"),
    ],
)
def test_a_search_looks_into_all_that_was_said_and_done(words, left):
    run = make_run(make_user(), status="running")
    make_call(run, reply={"text": "Hm."})
    make_step(run, tool="opening_hours", tool_input={"place": "颐和园"})
    make_call(run, reply={"text": "Let me see."})
    make_step(run, status="failed", observation="Nothing there")

    assert numbers(run, search=words) == left


def test_a_model_call_that_never_got_a_reply_is_the_last_row():
    run = long_run(1, status="failed")
    attempt(run)

    assert numbers(run) == [1, 2, 3]
    assert numbers(run, show="errors") == [3]
    assert numbers(run, show="tools") == [2]
    assert count_rows(run) == (2, 1, 1)


@pytest.mark.parametrize(
    ("status", "code"), [("canceled", "canceled"), ("limit_reached", "time_limit")]
)
def test_a_call_that_was_interrupted_is_a_row_and_no_error(status, code):
    run = long_run(1, status=status)
    attempt(run, code=code, elapsed=5.2)
    last = window(run).rows[-1]

    assert last.words == "Stopped after 5.2 s"
    assert (last.number, last.state) == (3, "")
    assert count_rows(run).errors == 0


def test_the_next_error_is_the_first_one_after_the_last():
    run = long_run(1)
    for _ in range(2):
        make_call(run)
        make_step(run, status="failed", observation="No.")

    assert [find_next_error(run, after) for after in (0, 4, 6)] == [4, 6, 4]
    assert find_next_error(long_run(1), 0) is None


def test_what_an_address_says_wrong_counts_as_not_said():
    choice = parse_run_page_params(
        {"show": "secrets", "step": "-1", "as": "xml", "q": "  "}
    )

    assert choice == RunPageParams()
    assert parse_run_page_params({"q": "a" * 1000}).search == "a" * 200


def test_links_keep_what_was_chosen():
    choice = parse_run_page_params(
        {"show": "errors", "q": "a b", "as": "time", "step": "7"}
    )

    assert choice.query() == "show=errors&q=a+b&as=time&step=7"
    assert choice.query(show="") == "q=a+b&as=time&step=7"
    assert choice.row_query == "show=errors&q=a+b&as=time&"
    assert RunPageParams().row_query == ""


def test_a_row_found_by_a_hidden_text_shows_the_line_around_it():
    run = make_run(make_user(), status="succeeded", started_at=BEGAN)
    make_call(run, reply={"text": "Looks.", "reasoning": "It is a Heron."})
    make_step(run, observation=f"{'long ' * 200} then a heron came", log="")
    make_step(run, observation="short", log=f"{'.' * 400} HERON")
    make_step(run, tool="heron", observation="heron")
    hits = [row.matching_line for row in window(run, search="heron").rows]

    assert hits[0] == "It is a Heron."
    assert hits[1].startswith("…")
    assert hits[1].endswith("then a heron came")
    assert hits[2].endswith("... HERON")
    assert hits[3] == ""


def test_a_search_finds_what_is_later_than_the_open_step():
    run = long_run(80)
    make_step(run, observation="a heron")

    assert numbers(run, step=2, search="heron") == [161]
