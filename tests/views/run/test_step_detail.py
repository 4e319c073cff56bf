"""The page of one run."""

import gzip
import json
import re
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders
from django.utils import timezone

from runs.engine.stopping import FORCED_STOP_MESSAGE
from runs.engine.types import ExecutorOptions, ModelSettings
from runs.models import Allowance, ModelAttempt, Resume, Run
from tests.make import (
    make_agent,
    make_call,
    make_decision,
    make_provider,
    make_run,
    make_spec,
    make_step,
    make_user,
    make_worker,
)
from tests.support.html import join_lines, strip_tags
from tools.spec import ToolSpec

pytestmark = pytest.mark.django_db

LOOK = ToolSpec(name="look", args_schema={"type": "object"}, effect="read")
HTMX = {"HX-Request": "true"}


def page(client, run, query=""):
    """Return the text of a run's page."""
    answer = client.get(f"/runs/{run.pk}/{query}")
    assert answer.status_code == 200
    return join_lines(answer.content.decode())


def part(client, run, query=""):
    """Return what htmx gets."""
    answer = client.get(f"/runs/{run.pk}/{query}", headers=HTMX)
    assert answer.status_code == 200
    return join_lines(answer.content.decode())


def current_row(text):
    """Return the number of the row that is marked as the current one."""
    [number] = re.findall(
        r'<a class="step"[^>]*aria-current="true">\s*<span class="no">(\d+)<', text
    )
    return number


def two_steps(run):
    """Give `run` a call with one step, and a last call."""
    asked = {"id": "c1", "name": "calculator", "arguments": "{}"}
    make_call(run, reply={"tool_calls": [asked]})
    make_step(run)
    return make_call(run, reply={"text": "It is 4."})


def test_shows_every_row_in_order(client, ann):
    run = make_run(ann, status="running")
    two_steps(run)
    text = page(client, run)

    places = [text.index(f'id="run-step-{number}"') for number in (1, 2, 3)]
    assert places == sorted(places)
    assert "Calls calculator" in text
    assert "2 + 2 → 4" in text


@pytest.mark.parametrize("status", ["running", "succeeded"])
@pytest.mark.parametrize("name", ["step", "before", "after"])
def test_a_row_that_cannot_be_is_no_error(client, ann, name, status):
    run = make_run(ann, status=status)
    two_steps(run)

    for number in (2**31, 2**63 - 1, 2**63):
        page(client, run, f"?{name}={number}")
    assert client.get(f"/runs/{run.pk}/next-error/?after={2**63}").status_code == 302


def test_hides_what_is_someone_elses(client, ann):
    run = make_run(make_user("bob"))

    for address in ("", "rows/", "banner/", "actions/", "answer/"):
        assert client.get(f"/runs/{run.pk}/{address}").status_code == 404
    for address in ("stop/", "again/", "resume/"):
        assert client.post(f"/runs/{run.pk}/{address}").status_code == 404


def test_gives_htmx_only_the_pane_of_the_chosen_step(client, ann):
    run = make_run(ann, status="running")
    two_steps(run)
    text = part(client, run, "?step=2")

    assert text.lstrip().startswith('<section class="pane" id="run-detail"')
    assert "Step 2 · calculator" in text


def test_a_running_run_has_a_connector_that_goes_on_where_the_page_ends(client, ann):
    run = make_run(ann, status="running", seq=41)

    assert f'hx-sse:connect="/live/runs/{run.pk}/?after=41"' in page(client, run)


def test_a_run_that_is_over_has_none(client, ann):
    text = page(client, make_run(ann, status="succeeded"))

    assert 'hx-sse:connect="/live/runs/' not in text
    assert text.count("hx-sse:connect") == 1  # what every page has


def test_an_answer_is_markdown_without_scripts_and_images(client, ann):
    output = "**4**\n\n![x](http://evil/p.png)<script>alert(1)</script>"
    text = page(client, make_run(ann, status="succeeded", output=output))

    assert "<strong>4</strong>" in text
    assert "<img" not in text
    assert "<script>alert" not in text


@pytest.mark.parametrize("status", Run.Status.values)
def test_says_every_status_in_words(client, ann, status):
    run = make_run(ann, status=status)

    assert f'data-status="{status}"' in page(client, run)


def test_says_that_no_worker_is_there(client, ann):
    assert "No worker is running" in page(client, make_run(ann))


def test_says_the_place_in_the_queue(client, ann):
    make_worker()
    make_run(ann)

    assert "Number 2 in the queue" in page(client, make_run(ann))


def test_says_when_a_worker_gives_no_sign_of_life(client, ann):
    make_worker()
    lease = timezone.now() - timedelta(seconds=10)
    text = page(client, make_run(ann, status="running", lease_until=lease))

    assert "another worker will take over" in text


def test_asks_with_the_exact_arguments(client, ann):
    run = make_run(ann, status="awaiting_approval")
    step = make_step(
        run, status="awaiting_approval", tool="refund", tool_input={"amount": 49}
    )
    make_decision(step)
    text = page(client, run)

    assert "Approval required" in text
    assert "&quot;amount&quot;" in text
    assert "Approve and continue" in text


def test_the_step_that_waits_for_a_person_is_open_and_marked(client, ann):
    run = make_run(ann, status="awaiting_approval")
    call = make_call(run)
    make_step(run, call=call, tool="look_up")
    waiting = make_step(run, call=call, tool="refund", status="awaiting_approval")
    make_step(run, call=call, tool="refund", status="planned")
    make_decision(waiting)

    text = page(client, run)

    assert '<h2 class="small">Step 3 · refund</h2>' in text
    assert current_row(text) == "3"


def test_the_step_that_is_followed_is_marked_in_the_list(client, ann):
    writing = make_run(ann, status="running")
    two_steps(writing)
    waiting = make_run(ann, status="waiting")
    two_steps(waiting)

    assert current_row(page(client, writing)) == "4"
    assert current_row(page(client, waiting)) == "3"
    assert current_row(page(client, waiting, "?step=2")) == "2"


def test_an_answer_on_the_page_continues_the_run_and_comes_back(client, ann):
    run = make_run(ann, status="awaiting_approval")
    step = make_step(run, status="awaiting_approval", tool_input={"amount": 49})
    decision = make_decision(step)
    here = f"/runs/{run.pk}/"
    assert f'name="next" value="{here}"' in page(client, run)
    answer = client.post(
        f"/approvals/{decision.pk}/answer/", {"answer": "approve", "next": here}
    )
    run.refresh_from_db()

    assert (answer.status_code, answer.headers["Location"]) == (302, here)
    assert run.status == "queued"


def test_an_allowance_is_shown_and_can_be_revoked(client, ann):
    run = make_run(ann)
    allowance = Allowance.objects.create(run=run, tool="refund", by=ann)
    decision = make_decision(make_step(run), answer="approved", allowance=allowance)
    assert "All calls of <code>refund</code>" in page(client, run)

    url = f"/approvals/allowances/{allowance.pk}/revoke/"
    client.post(url, {"next": f"/runs/{run.pk}/"})
    allowance.refresh_from_db()
    assert (allowance.revoked_by, decision.allowance) == (ann, allowance)
    assert "All calls of" not in page(client, run)


@pytest.mark.parametrize("action", ["again", "resume"])
def test_an_agent_that_is_no_longer_shared_does_not_run(client, ann, action):
    run = make_run(ann, agent=make_agent(make_user()), status="failed")

    text = client.post(f"/runs/{run.pk}/{action}/", follow=True).content.decode()

    assert "You cannot use the agent" in text
    assert list(Run.objects.values_list("status")) == [("failed",)]


@pytest.mark.parametrize("text", ["[" * 100_000, "[" * 600 + "]" * 600])
def test_a_result_nested_too_deeply_is_shown_as_it_is(client, ann, text):
    run = make_run(ann)
    make_step(run, observation=text)

    assert "[[[[" in client.get(f"/runs/{run.pk}/?step=2").content.decode()


def test_an_unknown_outcome_has_four_answers(client, ann):
    run = make_run(ann, status="awaiting_decision")
    make_decision(make_step(run, status="unknown"), question="outcome")
    text = page(client, run)

    for answer in ("happened", "retry", "skip", "fail"):
        assert f'value="{answer}"' in text


def test_a_failed_run_says_why_and_what_to_do(client, ann):
    run = make_run(
        ann, status="failed", error_code="auth", error_message="The key is wrong."
    )
    text = page(client, run)

    assert "The key is wrong." in text
    assert "Enter a valid API key for the provider" in text


def test_a_stopped_run_says_when_it_stopped(client, ann):
    ended = timezone.now()
    began = ended - timedelta(seconds=17)
    run = make_run(ann, status="limit_reached", started_at=began, ended_at=ended)
    state = page(client, run).split('id="run-progress"')[1].split("</p>")[0]

    assert "Round limit reached (15 rounds) · <time" in state
    assert "· 17 s total" in state


def test_a_stopped_run_goes_on_with_a_new_limit(client, ann):
    run = make_run(ann, status="limit_reached", rounds=15)
    text = page(client, run)
    client.post(f"/runs/{run.pk}/resume/", {"max_iterations": "30"})
    run.refresh_from_db()

    assert 'name="max_iterations" value="30"' in text
    assert run.status == "queued"
    assert run.resumes.get().limits == {"max_iterations": 30}


def test_the_sentence_of_a_limit_is_a_state_and_no_answer(client, ann):
    run = make_run(ann, status="limit_reached", rounds=15, output=FORCED_STOP_MESSAGE)
    text = page(client, run)

    assert FORCED_STOP_MESSAGE not in text
    assert "No answer." in text
    assert "data-copy-url" not in text
    assert client.get(f"/runs/{run.pk}/answer/").status_code == 404


def test_the_last_word_of_a_stopped_run_is_its_answer(client, ann):
    run = make_run(ann, status="limit_reached", rounds=15, output="So far: 4.")

    assert '<article class="prose" id="answer-text"><p dir="auto">So far: 4.' in page(
        client, run
    )


def test_stop_is_acknowledged_in_the_answer(client, ann):
    run = make_run(ann, status="running")
    answer = client.post(f"/runs/{run.pk}/stop/", headers=HTMX)

    assert "Stopping" in answer.content.decode()


def test_stop_works_without_a_script(client, ann):
    run = make_run(ann)
    answer = client.post(f"/runs/{run.pk}/stop/", follow=True)

    assert 'data-status="canceled"' in answer.content.decode()


def test_the_answer_can_be_downloaded(client, ann):
    run = make_run(ann, status="succeeded", output="# 晴")
    answer = client.get(f"/runs/{run.pk}/answer/")

    assert answer.content.decode() == "# 晴"
    assert f'filename="run-{run.pk}.md"' in answer["Content-Disposition"]


@pytest.mark.parametrize("tab", ["readable", "prompt", "request", "response", "tool"])
def test_every_tab_of_a_step_answers(client, ann, tab):
    run = make_run(ann, status="running")
    two_steps(run)

    assert "Step 2" in page(client, run, f"?step=2&tab={tab}")


def test_the_raw_response_keeps_unknown_fields(client, ann):
    run = make_run(ann, status="running")
    make_call(run, reply={"text": "Hi", "native": {"content": "Hi", "x_new": 7}})

    assert "x_new" in page(client, run, "?step=1&tab=response")


def test_the_raw_response_is_the_message_when_it_says_no_more_than_the_reply(
    client, ann
):
    run = make_run(ann, status="running")
    asked = {"id": "c1", "name": "calculator", "arguments": "{}"}
    make_call(run, reply={"text": "Hi", "tool_calls": [asked]})
    text = page(client, run, "?step=1&tab=response").replace("&quot;", '"')

    assert '"role": "assistant"' in text
    assert '"type": "function"' in text


def test_a_long_observation_is_cut_and_whole_as_a_file(client, ann):
    run = make_run(ann, status="running")
    make_step(run, observation="a" * 30_000)
    text = page(client, run, "?step=2")
    whole = client.get(f"/runs/{run.pk}/steps/2/observation/")

    assert "10,000 more characters" in text
    assert len(whole.content) == 30_000


def test_limits_burn_down(client, ann):
    spec = make_spec(executor={"max_iterations": 10, "budget": {"tokens": 1000}})
    run = make_run(ann, spec=spec, status="running", rounds=9, input_tokens=960)
    text = page(client, run)

    assert "10% left" in text
    assert "of 1,000" in text


def test_all_of_a_limit_is_left_only_where_nothing_is_used(client, ann):
    spec = make_spec(executor={"budget": {"tokens": 60_000}})
    fresh = make_run(ann, spec=spec, status="running")
    begun = make_run(ann, spec=spec, status="running", input_tokens=12)

    assert "Tokens<span>100% left" in page(client, fresh)
    assert "Tokens<span>99% left" in page(client, begun)


def test_a_long_run_sends_its_newest_rows_and_a_link_to_the_others(client, ann):
    run = make_run(ann, status="running")
    for _ in range(150):
        make_call(run)
        make_step(run)
    text = page(client, run)

    assert 'id="run-step-300"' in text
    assert 'id="run-step-200"' not in text
    assert 'href="?before=201"' in text
    assert 'id="run-step-200"' in page(client, run, "?before=201")
    earlier = client.get(f"/runs/{run.pk}/rows/?before=101").content.decode()
    assert 'id="run-step-1"' in earlier
    assert 'id="run-step-101"' not in earlier


@pytest.mark.parametrize(
    ("executor", "left_out", "says"),
    [
        pytest.param(
            {"trim_intermediate_steps": 1},
            [1, 2],
            "Rounds 1 to 2 are omitted: the agent sends only the last 1 round",
            id="trimmed",
        ),
        pytest.param(
            {"context_tokens": 4000},
            [1],
            "Round 1 is omitted: the request is limited to 4,000 tokens.",
            id="too long",
        ),
        pytest.param(
            {"context_tokens": 4000, "context_method": "summary"},
            [1],
            "Round 1 is omitted: a summary keeps the request within 4,000 tokens.",
            id="summary",
        ),
    ],
)
def test_says_which_rounds_a_request_left_out(client, ann, executor, left_out, says):
    run = make_run(ann, status="running", spec=make_spec(executor=executor))
    make_call(run, left_out=left_out)

    assert says in page(client, run, "?step=1&tab=prompt")


def test_a_reply_that_a_resume_has_set_aside_is_labelled(client, ann):
    run = make_run(ann, status="running")
    two_steps(run)
    Resume.objects.create(run=run, at_index=1, at_number=2)
    make_call(run)
    text = page(client, run, "?step=3")

    assert text.count(">superseded</span>") == 1
    assert "resumed here with a new model call" in text
    assert "resumed here with" not in page(client, run, "?step=4")


def test_a_failed_attempt_says_that_its_text_had_been_shown(client, ann):
    run = make_run(ann, status="running")
    make_call(run)
    for attempt, shown in ((1, True), (2, False)):
        ModelAttempt.objects.create(
            run=run,
            number=0,
            attempt=attempt,
            code="transport",
            message="It broke.",
            was_streamed=shown,
            started_at=timezone.now(),
            elapsed=1.0,
            created_seq=1,
        )

    text = page(client, run, "?step=1&tab=attempts")
    assert text.count("Part of its text was shown") == 1


def test_says_in_which_attempt_a_running_run_asks_the_model(client, ann):
    run = make_run(ann, status="running")
    ModelAttempt.objects.create(
        run=run,
        number=0,
        attempt=1,
        code="timeout",
        message="The server sent nothing for 60 s.",
        retry_in=30.0,
        started_at=timezone.now(),
        elapsed=0.5,
        created_seq=1,
    )

    text = page(client, run)
    assert "Attempt 2 of 5 in 3" in text
    assert "Last error: The server sent nothing for 60 s." in text
    assert 'Round 1: <span id="run-activity">Attempt 2 of 5' in text
    assert "Next attempt after 30 s" in text


def test_keeps_the_time_of_a_run_stopped_while_the_model_wrote(client, ann):
    now = timezone.now()
    run = make_run(
        ann,
        status="canceled",
        started_at=now - timedelta(seconds=5),
        ended_at=now,
    )

    assert "Working time</dt><dd>5.0 s" in page(client, run)


def test_what_a_resumed_run_waited_for_is_no_working_time(client, ann):
    now = timezone.now()
    ago = {seconds: now - timedelta(seconds=seconds) for seconds in (5, 3600)}
    run = make_run(ann, status="running", started_at=ago[3600], queued_at=ago[5])
    make_call(run, started_at=ago[3600], elapsed=2.0)
    text = page(client, run)

    used = re.search(r'Working time</dt><dd><span data-clock="([\d.]+)', text)
    asked = re.search(
        r'<span class="n" data-clock="([\d.]+)', text.split('id="run-now"')[1]
    )
    assert used is not None
    assert asked is not None
    assert 7 <= float(used[1]) < 60
    assert 5 <= float(asked[1]) < 60


def test_a_run_canceled_while_it_waited_for_a_person_has_not_worked_so_long(
    client, ann
):
    now = timezone.now()
    began = now - timedelta(hours=1)
    run = make_run(ann, status="canceled", started_at=began, ended_at=now)
    call = make_call(run, started_at=began, elapsed=2.0)
    step = make_step(run, call=call, status="canceled", started_at=None)
    make_decision(step, answer="withdrawn")

    text = page(client, run)
    assert "Working time</dt><dd>2.0 s" in text
    assert '<span class="n">2.0 s</span>' in text.split('id="run-whole"')[1]


def test_a_failure_in_the_first_model_call_claims_no_steps_before_it(client, ann):
    text = page(client, make_run(ann, status="failed", rounds=0))

    assert "In the first model call" in text
    assert "No step was completed." in text
    assert "Resume reuses the completed steps" not in text


def test_a_failure_is_placed_where_the_list_of_steps_shows_it(client, ann):
    first = make_run(ann, status="failed")
    later = make_run(ann, status="failed")
    two_steps(later)
    asked = make_run(ann, status="failed")
    fail_next(asked)

    assert "Failed before the first step" in page(client, first)
    assert "Failed after step 3" in page(client, later)
    assert "Failed in step 1" in page(client, asked)


def test_a_run_that_waits_for_its_provider_says_why(client, ann):
    later = timezone.now() + timedelta(hours=2)
    provider = make_provider(ann, name="Local")
    run = make_run(ann, status="waiting", available_at=later, waiting_provider=provider)
    two_steps(run)
    fail_next(run)
    ModelAttempt.objects.filter(run=run).update(retry_in=7240)

    text = page(client, run)
    assert "Waiting for provider Local, next attempt at <time" in text
    assert "Waiting for provider Local, next attempt in" in text
    assert "Step 4 · model call" in text
    assert 'id="run-readable"' not in text


def test_a_million_tokens_fit_their_column(client, ann):
    run = make_run(ann, status="succeeded", input_tokens=1_410_000)

    text = page(client, run)
    assert '<span class="n tok">1.41 M</span>' in text
    assert "1,410,000" in text


def test_each_row_has_its_input_and_output_tokens(client, ann):
    run = make_run(ann, status="succeeded")
    make_call(run, input_tokens=1_200, output_tokens=34)

    text = page(client, run)

    assert (
        '<span class="n tok"><span title="1,200 input tokens, 34 output tokens">'
        '<span class="sum">1,234</span><span class="split">1,200 → 34</span></span>'
    ) in text


def test_what_a_person_is_needed_for_can_be_skipped_to(client, ann):
    for status in ("limit_reached", "failed"):
        text = page(client, make_run(ann, status=status))
        assert 'href="#run-need"' in text
        assert text.count('id="run-need"') == 1


def test_says_that_no_price_is_known_instead_of_a_made_up_zero(client, ann):
    run = make_run(ann, status="succeeded")

    assert "no price" in client.get(f"/runs/{run.pk}/").content.decode()


def test_gives_htmx_the_steps_where_it_asks_for_them(client, ann):
    run = make_run(ann, status="running")
    two_steps(run)
    headers = {**HTMX, "HX-Target": "section#run-steps-pane"}
    answer = client.get(f"/runs/{run.pk}/?show=model", headers=headers)
    text = answer.content.decode()

    assert text.lstrip().startswith('<section class="pane" id="run-steps-pane"')
    assert 'id="run-step-2"' not in text
    assert 'href="?show=model&amp;step=3"' in text
    assert "HX-Target" in answer["Vary"]


def test_a_search_says_how_many_steps_it_leaves(client, ann):
    run = make_run(ann, status="succeeded")
    two_steps(run)
    status = '<span class="found num" id="run-found" role="status">'

    assert f"{status}1 of 3 steps</span>" in page(client, run, "?q=It+is+4")
    assert f"{status}0 of 3 steps</span>" in page(client, run, "?q=颐和园")
    assert f"{status}</span>" in page(client, run)


def test_a_search_without_a_hit_says_so(client, ann):
    run = make_run(ann, status="running")
    two_steps(run)

    assert "No step of this run contains “颐和园”." in page(client, run, "?q=颐和园")


def test_the_next_error_opens_and_stays_in_the_filter(client, ann):
    run = make_run(ann, status="running")
    two_steps(run)
    make_step(run, status="failed", observation="No.")
    answer = client.get(f"/runs/{run.pk}/next-error/?after=1&show=errors")

    assert answer["Location"] == f"/runs/{run.pk}/?show=errors&step=4"


def test_the_next_error_of_someone_else_is_hidden(client, ann):
    run = make_run(make_user("bob"))

    assert client.get(f"/runs/{run.pk}/next-error/").status_code == 404


def test_a_failed_run_opens_at_the_step_that_failed(client, ann):
    run = make_run(ann, status="failed")
    two_steps(run)
    fail_next(run)

    for text in (page(client, run), part(client, run)):
        assert "Step 4 · model call, failed" in text
        assert 'data-step="4"' in text


def test_what_the_failed_call_would_have_sent_is_shown(client, ann):
    run = make_run(ann, status="failed")
    fail_next(run)

    text = page(client, run, "?step=1&tab=prompt")
    assert "Built from the record" in text
    assert "What is 2 + 2?" in text
    assert "What is 2 + 2?" in page(client, run, "?step=1&tab=request")
    file = client.get(f"/runs/{run.pk}/steps/1/request/")
    assert b"What is 2 + 2?" in file.content


def test_the_call_under_way_shows_what_it_is_sent(client, ann):
    run = make_run(ann, status="running")

    assert "Step 1 · model call, in progress" in page(client, run, "?step=1")
    assert "What is 2 + 2?" in page(client, run, "?step=1&tab=prompt")


def fail_next(run):
    """Make the failed attempt at the call that comes next."""
    ModelAttempt.objects.create(
        run=run,
        number=run.next_number,
        attempt=1,
        code="timeout",
        message="The server sent nothing.",
        started_at=timezone.now(),
        elapsed=1.0,
        created_seq=1,
    )


def test_a_request_of_many_messages_lists_the_first_and_the_last(client, ann):
    spec = make_spec(tools=(LOOK,), executor={"max_iterations": 99})
    run = make_run(ann, status="running", spec=spec)
    for number in range(40):
        call = {"id": f"c{number}", "name": "look", "arguments": "{}"}
        make_call(run, reply={"tool_calls": [call]})
        make_step(run, tool="look", call_id=f"c{number}", observation=f"seen {number}")
    make_call(run)
    address = f"?step={run.next_number + run.next_index}&tab=prompt"

    text = page(client, run, address)
    assert "messages not shown" in text
    assert "seen 39" in text
    assert "seen 20" not in part(client, run, address)
    assert "seen 20" in part(client, run, f"{address}&all=1")


def test_a_child_run_names_the_step_that_called_it(client, ann):
    parent = make_run(ann, status="waiting")
    two_steps(parent)
    run = make_run(ann, source="parent", parent_step=parent.steps.get())

    assert f'href="/runs/{parent.pk}/?step=2">run {parent.pk}</a>' in page(client, run)


def test_the_scripts_of_the_page_stay_small(client, ann):
    text = page(client, make_run(ann))
    paths = re.findall(r'<script src="/static/([^"]+)"', text)
    packed = [gzip.compress(Path(finders.find(path)).read_bytes()) for path in paths]

    assert len(paths) == 7
    assert sum(map(len, packed)) < 80_000


@pytest.mark.parametrize(
    ("tab", "shown"),
    [
        pytest.param("readable", "a &lt;i&gt;<mark>heron</mark>", id="readable"),
        pytest.param("tool", "a &lt;i&gt;<mark>heron</mark>", id="tool"),
        pytest.param("response", "Is it a <mark>Heron</mark>?", id="raw response"),
    ],
)
def test_a_search_is_marked_in_the_open_step_and_kept(client, ann, tab, shown):
    run = make_run(ann, status="succeeded")
    make_call(run, reply={"text": "Is it a Heron?", "tool_calls": []})
    make_step(run, observation="a <i>heron")
    query = f"?q=heron&step=2&tab={tab}"
    text = page(client, run, query)

    assert shown in part(client, run, query)
    assert shown in text
    assert '<span class="clip hit">Is it a <mark>Heron</mark>?</span>' in text
    assert "?q=heron&amp;step=2&amp;tab=tool" in text


def test_a_search_marks_what_the_model_saw_and_opens_it(client, ann):
    prompt = {"messages": [{"role": "user", "template": "{input}"}]}
    run = make_run(ann, status="running", spec=make_spec(prompt=prompt))
    text = part(client, run, "?q=2+%2B+2&step=1&tab=prompt")

    assert "What is <mark>2 + 2</mark>?" in text


ODD = "\r\n <b>&amp; Sun\r\nand\tmoon </b>\n\n"
"""A text that a page cannot show as it is."""


@pytest.mark.parametrize(
    ("step", "tab", "what", "exact"),
    [
        pytest.param(1, "readable", "text", f"I look.{ODD}", id="thought"),
        pytest.param(1, "readable", "reasoning", f"Perhaps.{ODD}", id="reasoning"),
        pytest.param(2, "readable", "text", f"Log.{ODD}", id="thought of a step"),
        pytest.param(2, "readable", "input", f"2 + 2{ODD}", id="input"),
        pytest.param(2, "readable", "observation", '{"a":1}' + ODD * 9_000, id="long"),
        pytest.param(2, "tool", "input", f"2 + 2{ODD}", id="arguments"),
        pytest.param(2, "tool", "observation", '{"a":1}' + ODD * 9_000, id="result"),
        pytest.param(1, "prompt", "message-0", "Be brief.", id="first message"),
        pytest.param(1, "prompt", "message-1", f"Go{ODD}", id="new message"),
    ],
)
def test_every_body_is_copied_exactly(client, ann, step, tab, what, exact):
    prompt = {
        "messages": [
            {"role": "system", "template": "Be brief."},
            {"role": "user", "template": "{input}"},
        ]
    }
    run = make_run(
        ann,
        status="succeeded",
        spec=make_spec(prompt=prompt, tools=(LOOK,)),
        inputs={"input": f"Go{ODD}"},
    )
    make_call(run, reply={"text": f"I look.{ODD}", "reasoning": f"Perhaps.{ODD}"})
    observed = '{"a":1}' + ODD * 9_000
    make_step(run, tool_input=f"2 + 2{ODD}", observation=observed, log=f"Log.{ODD}")
    address = f"/runs/{run.pk}/steps/{step}/{what}/"

    assert f'data-copy-url="{address}"' in page(client, run, f"?step={step}&tab={tab}")
    assert client.get(address).content.decode() == exact


@pytest.mark.parametrize(
    "what", ["message-9", "message-x", "message", "tools-1", "response-1", "nonsense"]
)
def test_a_text_that_a_step_has_not_is_not_found(client, ann, what):
    run = make_run(ann, status="succeeded")
    two_steps(run)

    assert client.get(f"/runs/{run.pk}/steps/1/{what}/").status_code == 404
    assert client.get(f"/runs/{run.pk}/steps/1/observation/").status_code == 404
    assert client.get(f"/runs/{run.pk}/steps/2/reasoning/").status_code == 404


def test_a_raw_request_is_indented_json(client, ann):
    spec = make_spec(model=ModelSettings(model="m", parameters={"top_p": 1e-07}))
    run = make_run(ann, status="running", spec=spec, inputs={"input": 'Say "é"\n\x01'})
    make_call(run)

    text = client.get(f"/runs/{run.pk}/steps/1/request/").content.decode()
    assert text == json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    assert json.loads(text)["messages"][-1]["content"] == 'Say "é"\n\x01'


@pytest.mark.parametrize("letter", ["a", "京", "😀", "\n"], ids=ascii)
def test_a_long_raw_request_shows_its_beginning_and_its_size(client, ann, letter):
    run = make_run(ann, status="running", inputs={"input": letter * 90_000})
    make_call(run)

    part = client.get(
        f"/runs/{run.pk}/?step=1&tab=request", headers={"HX-Request": "true"}
    ).context
    whole = client.get(f"/runs/{run.pk}/steps/1/request/").content.decode()
    assert part["raw"]["text"] == whole[:60_000]
    assert part["raw"]["cut"].startswith("The whole body has ")


def test_a_fork_says_how_it_was_started(client, ann):
    parent = make_run(ann, status="failed")
    run = make_run(ann, forked_from=parent, fork_index=0, fork_row=1, source="api")

    assert f"run {parent.pk}</a>, through the API" in page(client, run)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("page", "in the dashboard"),
        ("api", "through the API"),
        ("eval", "by an experiment"),
    ],
)
def test_says_how_the_run_was_started(client, ann, source, says):
    started = page(client, make_run(ann, source=source)).split("Started by</dt>")[1]

    assert re.search(rf"{says}, \d\d:\d\d$", strip_tags(started.split("</dd>")[0]))


def test_a_run_that_has_not_worked_has_no_time_axis(client, ann):
    waiting = page(client, make_run(ann))
    working = make_run(ann, status="running")
    two_steps(working)

    assert 'id="run-steps-head" data-scale="s0" data-empty' in waiting
    assert "0 ms" not in waiting
    assert "data-empty" not in page(client, working)


@pytest.mark.parametrize(
    ("code", "wants_fork"), [("context_too_long", True), ("timeout", False)], ids=str
)
def test_a_request_that_would_fail_again_is_forked(client, ann, code, wants_fork):
    run = make_run(ann, status="failed", error_code=code, error_message="No.")

    assert ("Fork at step 1</a>" in page(client, run)) is wants_fork


def test_a_request_that_is_too_long_names_the_longest_result(client, ann):
    run = make_run(ann, status="failed", error_code="context_too_long", next_index=2)
    make_step(run, index=0, tool="short", observation="x" * 100)
    make_step(run, index=1, tool="long", observation="x" * 40_000)
    text = page(client, run)

    [named] = re.findall(r'id="run-large-result">(.*?)</p>', text)
    assert "step 3 , long : about 10,000 tokens" in " ".join(strip_tags(named).split())
    assert f'href="/runs/{run.pk}/?step=3"' in named
    assert f'href="/runs/{run.pk}/fork/3/"' in text
    assert text.count("btn primary") == 1


@pytest.mark.parametrize(
    ("length", "trim"), [(7_999, -1), (40_000, 2)], ids=["short", "perhaps not sent"]
)
def test_only_a_long_result_that_was_sent_is_named(client, ann, length, trim):
    spec = make_spec(executor=ExecutorOptions(trim_intermediate_steps=trim))
    run = make_run(ann, status="failed", error_code="context_too_long", spec=spec)
    make_step(run, observation="x" * length)
    text = page(client, run)

    assert "run-large-result" not in text
    assert f'href="/runs/{run.pk}/fork/"' in text


def test_the_header_leads_to_the_worker_and_out_of_the_site(client, ann):
    run = make_run(ann, status="succeeded", worker=make_worker(name="w7"))
    text = page(client, run)

    assert '<a href="/workers/">w7</a>' in text
    assert '<details class="phone-only" id="run-more-facts">' in text
    for way in ("share/", "export/html/", "export/json/"):
        assert f"/runs/{run.pk}/{way}" in text


def test_a_call_that_waits_for_its_provider_is_a_row(client, ann):
    run = make_run(ann, status="waiting", available_at=timezone.now())
    two_steps(run)
    fail_next(run)

    text = page(client, run)
    assert current_row(text) == "4"
    assert '<span class="tag">waiting</span>' in text
    assert "pulse" not in text
    assert current_row(page(client, run, "?step=4")) == "4"
    assert current_row(page(client, run, "?step=2")) == "2"


def test_a_lost_run_shows_nothing_live(client, ann):
    then = timezone.now() - timedelta(seconds=100)
    lease = then + timedelta(seconds=40)
    run = make_run(ann, status="running", started_at=then, lease_until=lease)
    text = page(client, run)

    assert "Model call interrupted" in text
    assert '<span class="tag" data-tone="need">no heartbeat</span>' in text
    assert "and no worker is running to take over" in text
    assert not re.findall("data-clock|data-grows|draft-text|>live<", text)
    assert '<span class="n">10 s</span>' in text

    make_worker()
    assert "another worker will take over" in page(client, run)


def test_a_call_that_a_lost_run_has_begun_says_so(client, ann):
    then = timezone.now() - timedelta(seconds=100)
    run = make_run(ann, status="running", started_at=then, lease_until=then)
    make_step(run, status="started", started_at=then)
    text = page(client, run)

    assert '<span class="tag" data-tone="need">no heartbeat</span>' in text
    assert not re.findall("w-live|>running<", text)


def test_a_run_without_a_step_says_what_comes(client, ann):
    run = make_run(ann)

    alone = page(client, run)
    assert "No worker is running. The run starts when a worker does" in alone
    make_worker()
    queued = page(client, run)
    assert "Number 1 in the queue" in queued
    assert "No step fits" not in page(client, run, "?show=errors")
    assert "The run ended before its first step" in page(
        client, make_run(ann, status="canceled")
    )
    for text in (alone, queued):
        assert 'href="/workers/">View workers' in text


def test_a_meter_of_an_ended_run_shows_what_was_used(client, ann):
    spec = make_spec(executor=ExecutorOptions(max_iterations=3, max_execution_time=9))
    run = make_run(ann, status="limit_reached", spec=spec, rounds=3)
    text = page(client, run)

    assert 'Rounds<span class="bad">100% used</span>' in text
    assert "Working time<span>0% used</span>" in text


@pytest.mark.parametrize("status", ["failed", "limit_reached"])
@pytest.mark.parametrize(
    "code", ["context_too_long", "timeout"], ids=["forks", "resumes"]
)
def test_what_the_banner_offers_is_not_in_the_header_too(client, ann, status, code):
    failed = {"error_code": code, "error_message": "No."} if status == "failed" else {}
    run = make_run(ann, status=status, **failed)
    two_steps(run)
    text = page(client, run)

    assert text.count(">Resume</button>") == 1
    assert text.count(">Resume</a>") == 0
    assert len(re.findall(rf'href="/runs/{run.pk}/fork/"', text)) == 1
    assert text.count("btn primary") == 1


def test_a_failed_run_of_a_called_agent_is_forked_from_its_header(client, ann):
    step = make_step(make_run(ann, status="running"))
    run = make_run(ann, status="failed", parent_step=step)

    assert f'href="/runs/{run.pk}/fork/"' in page(client, run)


def test_a_prompt_says_whose_count_its_tokens_are(client, ann):
    run = make_run(ann, status="succeeded")
    make_call(run, input_tokens=3_035)
    counted = part(client, run, "?step=1&tab=prompt")
    run.calls.update(input_tokens=0)
    guessed = part(client, run, "?step=1&tab=prompt")

    assert "3,035 tokens</b>" in counted
    assert "counted by the provider" in counted
    assert "Figures with ≈ are estimated" in counted
    assert "About " in guessed
    assert ">estimated" in guessed
