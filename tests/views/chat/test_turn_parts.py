"""What a turn asks a person, answered where it is shown."""

import pytest

from runs.models import Decision, Run
from tests.make import make_decision, make_run, make_step, make_user

pytestmark = pytest.mark.django_db
HX = {"HX-Request": "true"}


def asking(owner):
    """Return a run that waits for a yes, and its question."""
    run = make_run(owner, status="awaiting_approval")
    step = make_step(run, status="awaiting_approval", tool="book_table")
    return run, make_decision(step)


def test_shows_the_exact_call_with_approve_and_reject(client, ann):
    run, _ = asking(ann)

    part = client.get(f"/runs/{run.pk}/asks/", headers=HX).content.decode()

    assert part.strip().startswith(f'<div class="stack" id="turn-asks-{run.pk}"')
    assert "book_table" in part
    assert "2 + 2" in part


@pytest.mark.parametrize("word", ["approve", "reject"])
def test_takes_the_answer_once(client, ann, word):
    run, decision = asking(ann)
    given = {"decision": decision.pk, "answer": word, "shown": decision.shown_digest}

    client.post(f"/runs/{run.pk}/asks/", given, headers=HX)
    again = client.post(f"/runs/{run.pk}/asks/", given, headers=HX)

    assert Decision.objects.get().by == ann
    assert Run.objects.get().status == "queued"
    assert "already answered" in again.content.decode()


def test_an_unclear_answer_decides_nothing(client, ann):
    run, decision = asking(ann)

    client.post(f"/runs/{run.pk}/asks/", {"decision": decision.pk}, headers=HX)
    nothing = client.post(f"/runs/{run.pk}/asks/", {"decision": "²"})

    assert nothing.status_code == 404
    assert Decision.objects.get().answer == ""


def test_hides_what_is_someone_elses(client, ann):
    run, decision = asking(make_user())

    shown = client.get(f"/runs/{run.pk}/asks/")
    message = client.post(
        f"/runs/{run.pk}/asks/", {"decision": decision.pk, "answer": "approve"}
    )

    assert (shown.status_code, message.status_code) == (404, 404)
    assert Decision.objects.get().answer == ""


def test_without_a_script_refused_arguments_are_kept_on_the_run_page(client, ann):
    run, decision = asking(ann)
    given = {"decision": decision.pk, "answer": "approve", "edited": '{"people": 3'}

    url = f"/runs/{run.pk}/asks/"
    page = client.post(url, given, follow=True).content.decode()

    assert "{&quot;people&quot;: 3</textarea>" in page
    assert "a comma or a closing bracket is missing" in page


def test_edited_arguments_run_and_refused_ones_are_kept(client, ann):
    run, decision = asking(ann)
    decision.shown = {**decision.shown, "tool_input": {"people": 2}}
    decision.save()
    given = {"decision": decision.pk, "answer": "approve"}
    given["shown"] = decision.shown_digest

    wrong = client.post(
        f"/runs/{run.pk}/asks/", given | {"edited": '{"people": 3'}, headers=HX
    ).content.decode()
    client.post(
        f"/runs/{run.pk}/asks/", given | {"edited": '{"people": 3}'}, headers=HX
    )

    assert "{&quot;people&quot;: 3</textarea>" in wrong
    assert "a comma or a closing bracket is missing" in wrong
    assert Decision.objects.get().edited_input == {"people": 3}
