"""Two runs side by side."""

from datetime import timedelta

import pytest
from django.utils import timezone

from runs.engine.types import ExecutorOptions, ModelSettings
from runs.models import Resume
from tests.make import make_agent, make_call, make_run, make_spec, make_step, make_user
from tests.support.html import join_lines

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}


def run_with(owner, *observations, **fields):
    run = make_run(owner, status="succeeded", **fields)
    for place, message in enumerate(observations):
        make_call(run)
        make_step(run, tool_input={"place": place}, observation=message)
    make_call(run, reply={"text": f"It is {observations[-1]}."})
    return run


def page(client, one, other, more="", **headers) -> str:
    url = f"/runs/compare/?a={one.pk}&b={other.pk}{more}"
    return join_lines(client.get(url, headers=headers or None).content.decode())


def test_folds_equal_steps_and_marks_what_differs(client, ann):
    one, other = run_with(ann, "sun", "4 km"), run_with(ann, "sun", "5 km")
    text = page(client, one, other)

    assert "Steps 1 to 3 of both runs: the same" in text
    assert "different result" in text
    assert '<span class="gap">Result</span>' in text
    assert "<del>4</del> km" in text
    assert "<ins>5</ins> km" in text
    assert "3 the same, 2 different," in text


def test_shows_every_step_where_that_is_asked_for(client, ann):
    one, other = run_with(ann, "sun", "4 km"), run_with(ann, "sun", "5 km")
    text = page(client, one, other, "&show=all")

    assert "of both runs: the same" not in text
    assert text.count('id="run-compare-side-A-') == 5


def test_gives_htmx_only_the_steps(client, ann):
    one, other = run_with(ann, "sun"), run_with(ann, "rain")
    text = page(client, one, other, **HTMX)

    assert text.lstrip().startswith(
        '<section class="card flush" id="run-compare-steps"'
    )


@pytest.mark.parametrize("whose", ["a", "b"])
def test_hides_what_is_someone_elses(client, ann, whose):
    mine, other = run_with(ann, "x"), run_with(make_user("bob"), "x")
    a, b = (other, mine) if whose == "a" else (mine, other)

    assert client.get(f"/runs/compare/?a={a.pk}&b={b.pk}").status_code == 404
    assert client.get(f"/runs/compare/?a={other.pk}").status_code == 404


def test_says_the_differences_in_time_tokens_and_cost(client, ann):
    one = run_with(ann, "x", cost="0.5")
    other = run_with(ann, "x", "y", cost="0.25")
    text = page(client, one, other)

    assert "<i>+120</i>" in text
    assert "<i>−$0.25" in text
    assert "<i>+1</i>" in text


@pytest.mark.parametrize(
    ("mine", "theirs", "shown", "difference"),
    [
        pytest.param(3.74, 1.86, "1.9 s", "−1.8 s", id="tenths"),
        pytest.param(41.6, 61.7, "1:02 min", "+20 s", id="seconds"),
    ],
)
def test_the_difference_in_time_is_that_of_the_times_one_reads(
    client, ann, mine, theirs, shown, difference
):
    now = timezone.now()
    runs = [
        run_with(ann, "x", started_at=now - timedelta(seconds=took), ended_at=now)
        for took in (mine, theirs)
    ]

    assert f"<dd>{shown} <i>{difference}</i></dd>" in page(client, *runs)


def test_the_difference_in_cost_is_that_of_the_costs_one_reads(client, ann):
    one, other = (run_with(ann, "x", cost=cost) for cost in ("0.01464", "0.00988"))
    text = page(client, one, other)

    assert "<dd>$0.0099 <i>−$0.0047</i></dd>" in text


def test_names_a_step_that_only_one_has(client, ann):
    one, other = run_with(ann, "x"), run_with(ann, "x", "y")
    text = page(client, one, other)

    assert "only B" in text
    assert "not in this run" in text


def test_says_what_was_set_differently(client, ann):
    model = ModelSettings(model="model-b", parameters={"seed": 1})
    spec = make_spec(model=model, prompt={"template": "Be brief. {input}"})
    one, other = run_with(ann, "x"), run_with(ann, "x", spec=spec)
    text = page(client, one, other)

    assert "model-b (no provider)" in text
    assert "seed 1" in text
    assert "Be" in text


def test_marks_the_difference_of_the_answers(client, ann):
    one = run_with(ann, "x", output="Go on Saturday.")
    other = run_with(ann, "x", output="Go on Sunday.")
    text = page(client, one, other)

    assert "Go on <del>Saturday</del>." in text
    assert "Go on <ins>Sunday</ins>." in text


def test_shows_hostile_text_as_text(client, ann):
    one = run_with(ann, "<script>alert(1)</script>")
    other = run_with(ann, "<script>alert(2)</script>")

    assert "<script>alert" not in page(client, one, other)


def test_two_runs_chosen_in_the_list_are_compared_the_older_as_a(client, ann):
    one, other = run_with(ann, "x"), run_with(ann, "y")
    answer = client.get(f"/runs/compare/?run={other.pk}&run={one.pk}")

    assert answer.context["a"] == one
    assert answer.context["b"] == other


def test_offers_runs_of_the_agent_to_compare_with(client, ann):
    agent = make_agent(ann)
    one, other = run_with(ann, "x", agent=agent), run_with(ann, "y", agent=agent)
    text = client.get(f"/runs/compare/?a={one.pk}").content.decode()

    assert f"?a={one.pk}&amp;b={other.pk}" in text
    assert "its parent" not in text
    fork = run_with(ann, "z", agent=agent, forked_from=one, fork_index=0, fork_row=1)
    assert "its fork" in client.get(f"/runs/compare/?a={one.pk}").content.decode()
    assert "its parent" in client.get(f"/runs/compare/?a={fork.pk}").content.decode()
    assert client.get("/runs/compare/").status_code == 200


@pytest.mark.slow
def test_a_long_comparison_comes_in_windows(client, ann):
    one = run_with(ann, *(f"a{n}" for n in range(70)))
    other = run_with(ann, *(f"b{n}" for n in range(70)))
    text = page(client, one, other, "&show=all")

    assert "1 to 100 of 141 lines" in text
    assert "101 to 141 of 141 lines" in page(client, one, other, "&show=all&from=100")


def test_limits_are_those_it_was_resumed_with(client, ann):
    spec = make_spec(executor=ExecutorOptions(max_iterations=1))
    one, other = run_with(ann, "x", spec=spec), run_with(ann, "x", spec=spec)
    more = {"max_iterations": 5}
    Resume.objects.create(run=other, at_index=1, at_number=1, limits=more, by=ann)

    text = page(client, one, other)

    assert "<span>1 round</span>" in text
    assert "<span>5 rounds</span>" in text


def test_a_cost_that_nobody_knows_is_no_zero(client, ann):
    text = page(client, run_with(ann, "x"), run_with(ann, "y"))

    assert "<dt>Cost</dt><dd>no price</dd>" in text


def test_the_title_names_both_runs(client, ann):
    one = run_with(ann, "sun", title="Plan a day")
    same = run_with(ann, "sun", title="Plan a day")
    other = run_with(ann, "sun", title="Plan a night")

    alike, apart = page(client, one, same), page(client, one, other)

    assert f"<h1>Runs {one.pk} and {same.pk}</h1>" in alike
    assert alike.count("Plan a day") == 1
    assert "Plan a day" in apart
    assert "Plan a night" in apart


def test_what_differs_is_said_before_both_sides(client, ann):
    short = make_spec(executor=ExecutorOptions(max_iterations=3))
    one, other = run_with(ann, "x", spec=short), run_with(ann, "x")
    before, after = page(client, one, other).split('<div class="mid">Limits</div>')

    assert "3 rounds" not in before
    assert after.index(">A<") < after.index("3 rounds") < after.index(">B<")


def test_says_with_what_another_is_compared(client, ann):
    one = run_with(ann, "sun", title="Plan a day")

    assert "Plan a day" in client.get(f"/runs/compare/?a={one.pk}").text
