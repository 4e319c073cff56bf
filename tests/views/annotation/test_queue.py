"""Annotation queues: settings, adding runs, the page, and scoring."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from runs.models import Annotation, AnnotationQueue, Example, RunScore, ScoredRun
from runs.services.annotation.annotate import AnnotationContent, add_example_of
from runs.services.annotation.claim import claim_next_run
from runs.services.annotation.queued_runs import add_runs_to_queue
from runs.services.datasets.from_run import add_runs_to_dataset
from tests.make import make_agent, make_dataset, make_run, make_step, make_user
from tests.makers.annotation import make_ended_run, make_queue, score_next
from tests.makers.experiments import make_revision
from tests.makers.scoring import make_rule

pytestmark = pytest.mark.django_db

SETTINGS = {
    "name": "Refunds",
    "question": "How good is it?",
    "scale_lines": "bad\nfair\ngood",
    "label_lines": "Tone\n\nTone\nFact",
    "passing_mark": 3,
    "people_per_run": 1,
    "visibility": "private",
}


def page_of(client, url: str, **given) -> str:
    return client.get(url, **given).content.decode()


def start(client, queue) -> str:
    """Start scoring, and return the address of the run."""
    return client.post(f"/queues/{queue.pk}/next/")["Location"]


def test_a_queue_is_created_with_its_scale_and_labels(client, ann):
    response = client.post("/queues/new/", SETTINGS)

    queue = AnnotationQueue.objects.get()
    assert response["Location"] == f"/queues/{queue.pk}/"
    assert (queue.scale, queue.labels) == (["bad", "fair", "good"], ["Tone", "Fact"])


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("scale_lines", "good", "Enter 2 to 9 names"),
        ("scale_lines", "a\nb\n" + "x" * 31, "at most 30 characters per line"),
        ("label_lines", "\n".join("abcdefghi"), "Enter at most 8 labels"),
        ("passing_mark", 4, "Enter a number from 2 to 3"),
        ("passing_mark", 1, "Enter a number from 2 to 3"),
        ("people_per_run", 0, "Enter a number from 1 to 20"),
        ("visibility", "groups", "not a member of any group"),
    ],
)
def test_wrong_settings_are_named(client, ann, field, value, said):
    page = client.post("/queues/new/", {**SETTINGS, field: value}).content.decode()

    assert said in page
    assert not AnnotationQueue.objects.exists()


def test_a_used_scale_keeps_its_length(client, ann):
    queue = make_queue(ann, runs=1)
    score_next(queue, ann)
    url = f"/queues/{queue.pk}/edit/"

    assert "duplicate the queue" in client.post(url, SETTINGS).content.decode()
    renamed = {**SETTINGS, "scale_lines": "1\n2\n3\n4\nbest"}
    assert client.post(url, renamed).status_code == 302
    queue.refresh_from_db()
    assert queue.scale[-1] == "best"


def test_selected_runs_of_the_list_are_added_by_their_owner_only(client, ann):
    queue, agent = make_queue(ann), make_agent(ann)
    mine, other = make_ended_run(agent), make_ended_run(make_agent(make_user("ben")))
    running = make_run(agent=agent, status="running")
    runs = [mine.pk, other.pk, running.pk]

    offered = client.post("/runs/selected/", {"do": "queue", "run": runs})
    assert f'value="{mine.pk}"' in offered.content.decode()
    assert f'value="{other.pk}"' not in offered.content.decode()
    added = client.post(
        "/queues/add/", {"run": runs, "queue": queue.pk}, follow=True
    ).content.decode()

    assert "1 run added." in added
    assert "1 run not added: it has not ended." in added
    assert [item.run for item in queue.items.all()] == [mine]


def test_a_run_page_leads_to_the_queues(client, ann):
    run = make_ended_run(make_agent(ann))

    assert f"/queues/add/?run={run.pk}" in page_of(client, f"/runs/{run.pk}/")
    assert "No queues yet" in page_of(client, f"/queues/add/?run={run.pk}")


def test_without_runs_nothing_is_added(client, ann):
    queue = make_queue(ann)
    response = client.post("/queues/add/", {"run": "x", "queue": queue.pk})

    assert "Select runs in the list first" in response.content.decode()


def test_scoring_opens_the_next_run_until_none_is_left(client, ann):
    queue = make_queue(make_user("ben"), runs=2)
    first = start(client, queue)
    page = page_of(client, first)
    assert "question 0" in page
    assert "Reserved for you" in page

    said = {"mark": 2, "labels": ["Tone"], "comment": "Rude.", "correction": "Because."}
    second = client.post(first, said)["Location"]
    assert "question 1" in page_of(client, second)
    end = client.post(second, {"mark": 5}, follow=True)

    assert "No runs are left for you" in end.content.decode()
    kept = Annotation.objects.get(mark=2)
    assert (kept.labels, kept.comment, kept.correction) == (["Tone"], "Rude.", "")


def test_people_of_a_queue_read_its_runs_but_not_their_pages(client, ann):
    ben = make_user("ben")
    queue = make_queue(ben)
    run = make_ended_run(make_agent(ben), "What is new?", output="Nothing is.")
    make_step(run, tool="search_news", observation="no news")
    queue.items.create(run=run)
    page = page_of(client, start(client, queue))

    assert "Nothing is." in page
    assert "search_news" in page
    assert f'href="/runs/{run.pk}/"' not in page
    assert client.get(f"/runs/{run.pk}/").status_code == 404


def test_a_private_queue_hides_its_runs(client, ann):
    queue = make_queue(make_user("ben"), runs=1, visibility="private")
    item = queue.items.get()

    for url in ("", f"runs/{item.pk}/"):
        assert client.get(f"/queues/{queue.pk}/{url}").status_code == 404
    for url in ("next/", "undo/", f"runs/{item.pk}/", f"runs/{item.pk}/skip/"):
        assert client.post(f"/queues/{queue.pk}/{url}", {"mark": 1}).status_code == 404
    assert not Annotation.objects.exists()


def test_a_score_that_is_missing_is_asked_for_and_the_text_stays(client, ann):
    url = start(client, make_queue(ann, runs=1))

    page = client.post(url, {"comment": "Hm.", "correction": "No."}).content.decode()

    assert "Select a score from 1 to 5." in page
    assert "Hm.</textarea>" in page
    assert "No.</textarea>" in page
    assert not Annotation.objects.filter(state="done").exists()


def test_scores_of_others_appear_after_ones_own(client, ann):
    queue = make_queue(ann, runs=1, people_per_run=2)
    item = score_next(queue, make_user("ben"), 3)
    url = f"/queues/{queue.pk}/"
    assert "Hidden until you have scored it" in page_of(client, url)
    assert "Their scores appear after yours" in page_of(client, f"{url}runs/{item.pk}/")

    client.post(start(client, queue), {"mark": 5})

    page = page_of(client, url)
    assert 'title="ben">3</span>' in page
    assert 'title="ann">5</span>' in page
    assert "Different scores" in page


def score_by_rule(item, *, value: float, passed: bool) -> None:
    """Store what a rule with one evaluator says of a run."""
    revision = make_revision(item.run.owner, name="Judge")
    rule = make_rule(item.run.agent, evaluators=[revision.evaluator])
    scored = ScoredRun.objects.create(rule=rule, run=item.run, state="done")
    RunScore.objects.create(
        scored=scored,
        revision=revision,
        value=value,
        passed=passed,
        explanation="Late.",
    )


def test_scores_of_rules_and_people_appear_on_the_run_once_it_is_scored(client, ann):
    queue = make_queue(ann, runs=1, people_per_run=2)
    item = score_next(queue, make_user("ben"), 2, comment="Too short.")
    score_by_rule(item, value=0.4, passed=False)
    url = start(client, queue)

    page = page_of(client, url)
    assert "Their scores appear after yours" in page
    assert 'class="scores"' not in page
    assert "Too short." not in page

    client.post(url, {"mark": 5})
    page = page_of(client, url)
    assert "Their scores appear after yours" not in page
    others = page.split('id="queue-others"')[1].split("</section>")[0]
    for said in ("Judge", "0.40", "Late.", "ben", "Too short.", "disagree"):
        assert said in others

    client.post(f"/queues/{queue.pk}/undo/")
    assert 'class="scores"' not in page_of(client, url)


def test_a_score_of_a_rule_alone_is_compared_with_the_last_run(client, ann):
    queue = make_queue(ann, runs=2)
    score_by_rule(score_next(queue, ann, 5), value=0.9, passed=True)

    last = page_of(client, start(client, queue)).split('class="prevdone"')[1]

    assert "Judge 0.90" in last
    assert "disagree" not in last
    assert "agree" in last


def test_the_last_run_says_whether_others_agree(client, ann):
    queue = make_queue(ann, runs=2, people_per_run=2)
    score_next(queue, make_user("ben"), 1)
    score_next(queue, ann, 5)

    page = page_of(client, start(client, queue))

    assert "Just done: run" in page
    assert "disagree" in page


def test_the_head_says_how_far_the_viewer_agrees_with_another_person(client, ann):
    queue = make_queue(ann, runs=4, people_per_run=3)
    ben, cleo = make_user("ben"), make_user("cleo")
    for person, marks in ((ben, (1, 5, 5, 1)), (cleo, (1, 1, 1))):
        for mark in marks:
            score_next(queue, person, mark)
    assert "Agreement with" not in page_of(client, start(client, queue))
    for mark in (1, 5, 1):
        score_next(queue, ann, mark)

    head = " ".join(page_of(client, start(client, queue)).split())

    assert "Agreement with ben <b>67%</b> on 3 runs" in head
    assert "κ</abbr> 0.40</span>" in head


def test_skip_undo_and_the_reservation(client, ann):
    queue = make_queue(ann, runs=2)
    first = start(client, queue)
    second = client.post(f"{first}skip/")["Location"]
    assert second != first

    assert client.post(f"/queues/{queue.pk}/undo/")["Location"] == first
    kept = client.post(f"{first}keep/", headers={"HX-Request": "true"})
    assert "Reserved for you" in kept.content.decode()
    Annotation.objects.all().delete()
    claimed = queue.items.first()
    claimed.annotations.create(by=make_user("ben"), state="done", mark=1)
    queue.items.filter(pk=claimed.pk).update(done_count=1)
    lost = client.post(f"{first}keep/", headers={"HX-Request": "true"})
    assert "ben has scored this run" in lost.content.decode()


OPEN_TO_ALL = "Not reserved: someone else may score this run, too."
RESERVED = "ben has reserved this run. You cannot score it now."


def reserved_part(page: str) -> str:
    return page.split('id="queue-reserved"')[1].split("</form>")[0]


def test_a_page_says_who_has_reserved_the_run(client, ann):
    queue = make_queue(ann, runs=1)
    url = f"/queues/{queue.pk}/runs/{queue.items.get().pk}/"
    assert OPEN_TO_ALL in reserved_part(page_of(client, url))
    claim_next_run(queue, by=make_user("ben"))

    opened = reserved_part(page_of(client, url))
    renewed = client.post(f"{url}keep/", headers={"HX-Request": "true"}).text

    for part in (opened, renewed):
        assert RESERVED in part
        assert OPEN_TO_ALL not in part
        assert "hx-trigger" not in part
    assert not Annotation.objects.filter(by=ann).exists()


def test_a_page_says_who_has_taken_over_an_expired_reservation(client, ann):
    queue = make_queue(ann, runs=1)
    url = start(client, queue)
    past = timezone.now() - timedelta(hours=1)
    Annotation.objects.update(claimed_until=past)
    claim_next_run(queue, by=make_user("ben"))

    part = reserved_part(page_of(client, url))

    assert RESERVED in part
    assert "Reserved for you" not in part


def test_a_page_of_a_scored_run_names_the_person_who_has_reserved_it(client, ann):
    queue = make_queue(ann, runs=1, people_per_run=2)
    claim_next_run(queue, by=make_user("ben"))
    item = score_next(queue, make_user("cleo"))

    url = f"/queues/{queue.pk}/runs/{item.pk}/"
    assert RESERVED in reserved_part(page_of(client, url))
    score_next(queue, User.objects.get(username="ben"))
    scored = "ben has scored this run. You cannot score it now."
    assert scored in reserved_part(page_of(client, url))


def test_a_run_with_room_for_another_person_is_open_to_all(client, ann):
    queue = make_queue(ann, runs=1, people_per_run=2)
    item = claim_next_run(queue, by=make_user("ben"))

    url = f"/queues/{queue.pk}/runs/{item.pk}/"
    assert OPEN_TO_ALL in reserved_part(page_of(client, url))


def test_the_changes_of_a_correction_are_marked_by_word(client, ann):
    queue = make_queue(ann, runs=1)
    url = start(client, queue)
    assert 'id="queue-difference"' in page_of(client, url)

    part = client.post(
        f"{url}difference/",
        {"correction": "Because <we> can."},
        headers={"HX-Request": "true"},
    ).content.decode()

    assert "Because<ins> &lt;we&gt; can</ins>." in part
    assert not Annotation.objects.filter(state="done").exists()


def test_nobody_is_offered_to_start_when_all_is_scored(client, ann):
    queue = make_queue(make_user("ben"), runs=1, people_per_run=2)
    assert "Start scoring" in page_of(client, f"/queues/{queue.pk}/")
    score_next(queue, ann)

    page = page_of(client, f"/queues/{queue.pk}/")

    assert "Start scoring" not in page
    assert "You have scored 1 run. No others wait for you." in " ".join(page.split())


def test_a_correction_is_added_to_the_dataset(client, ann):
    dataset = make_dataset(ann, name="Tickets")
    queue = make_queue(ann, runs=1, dataset=dataset)
    url = start(client, queue)
    assert "Add to dataset Tickets" in page_of(client, url)

    client.post(url, {"mark": 2, "correction": "42.\r\n", "is_added": "on"})

    assert Example.objects.get().expected_answer == "42."


def is_add_checked(page: str) -> bool:
    box = page.split('name="is_added"')[1].split("data-adds")[0]
    return " checked" in box


@pytest.mark.parametrize("is_known", [True, False])
def test_add_to_dataset_is_still_checked_after_undo(client, ann, is_known):
    dataset = make_dataset(ann)
    queue = make_queue(ann, runs=1, dataset=dataset)
    if is_known:
        add_runs_to_dataset([queue.items.get().run], dataset, by=ann)
    url = start(client, queue)
    assert not is_add_checked(page_of(client, url))
    client.post(url, {"mark": 2, "correction": "42.", "is_added": "on"})

    client.post(f"/queues/{queue.pk}/undo/")

    page = page_of(client, url)
    assert is_add_checked(page)
    assert "42.</textarea>" in page


def test_add_to_dataset_stays_cleared_after_undo(client, ann):
    queue = make_queue(ann, runs=1, dataset=make_dataset(ann))
    url = start(client, queue)
    client.post(url, {"mark": 2, "correction": "42.", "is_added": "on"})
    client.post(f"/queues/{queue.pk}/undo/")

    client.post(url, {"mark": 2, "correction": "42."})
    client.post(f"/queues/{queue.pk}/undo/")

    assert not is_add_checked(page_of(client, url))
    assert not Example.objects.exists()


def test_a_bad_answer_without_a_correction_is_not_expected(client, ann):
    dataset = make_dataset(ann, name="Tickets")
    queue = make_queue(ann, runs=1, dataset=dataset)

    client.post(start(client, queue), {"mark": 1, "is_added": "on"})

    example = Example.objects.get()
    assert (example.expected_answer, example.expected_calls) == ("", [])


def test_a_bad_answer_replaces_no_expected_answer(client, ann):
    dataset = make_dataset(ann, name="Tickets")
    queue = make_queue(ann, runs=1, people_per_run=2, dataset=dataset)
    good = {"mark": 5, "correction": "42.", "is_added": "on"}
    client.post(start(client, queue), good)

    bad = AnnotationContent(mark=1, is_added=True)
    add_example_of(queue.items.get(), bad, dataset=dataset, by=ann)

    assert Example.objects.get().expected_answer == "42."


def test_an_archived_queue_can_be_read_but_not_scored(client, ann):
    queue = make_queue(ann, runs=1)
    item = queue.items.get()
    client.post(f"/queues/{queue.pk}/archive/")

    page = client.post(f"/queues/{queue.pk}/runs/{item.pk}/", {"mark": 1})

    assert "The queue is archived" in page.content.decode()
    assert client.post(f"/queues/{queue.pk}/next/").status_code == 404
    assert not Annotation.objects.exists()


def test_only_the_owner_removes_runs(client, ann):
    queue = make_queue(ann, runs=1)
    other = make_queue(make_user("ben"), runs=1)
    item = queue.items.get()

    assert client.post(f"/queues/{other.pk}/runs/{item.pk}/remove/").status_code == 404
    client.post(f"/queues/{queue.pk}/runs/{item.pk}/remove/")

    assert not queue.items.exists()


def test_a_run_with_scores_is_removed_only_after_a_question(client, ann):
    queue = make_queue(ann, runs=1)
    item = queue.items.get()
    client.post(f"/queues/{queue.pk}/runs/{item.pk}/", {"mark": 1})

    page = client.post(f"/queues/{queue.pk}/runs/{item.pk}/remove/").text

    assert "Remove 1 run from the queue?" in page
    assert "Their scores in this queue are deleted." in page
    assert Annotation.objects.exists()
    pick = {"do": "remove", "sure": "1", "pick": str(item.pk)}
    client.post("/queued-runs/selected/", pick)
    assert not queue.items.exists()


def test_a_queue_that_is_done_leads_to_runs_with_different_scores(client, ann):
    queue = make_queue(ann, runs=2, people_per_run=2)
    for person, marks in (("ann", (5, 4)), ("ben", (1, 4))):
        by = User.objects.filter(username=person).first() or make_user(person)
        for mark in marks:
            page = page_of(client, f"/queues/{queue.pk}/")
            assert 'id="queue-done"' not in page
            score_next(queue, by, mark)

    page = page_of(client, f"/queues/{queue.pk}/")

    note = page.split('id="queue-done"')[1].split("</div>")[0]
    assert "All 2 runs are scored." in note
    assert 'href="?show=differ"' in note
    assert "Review the run with different scores" in " ".join(note.split())


def test_the_earlier_messages_of_a_conversation_are_above_the_input(client, ann):
    run = make_ended_run(
        make_agent(ann), "yes", given_turns=[["Delete <it>?", "It is **gone** then."]]
    )
    queue = make_queue(ann)
    add_runs_to_queue(queue, [run], by=ann)

    page = page_of(client, start(client, queue))

    assert "2 earlier messages" in page
    assert "Delete &lt;it&gt;?" in page
    assert "It is <strong>gone</strong> then." in page


def test_only_the_last_messages_of_a_long_conversation_are_shown(client, ann):
    turns = [[f"question {n}.", f"answer {n}."] for n in range(40)]
    queue = make_queue(ann)
    run = make_ended_run(make_agent(ann), "yes", given_turns=turns)
    add_runs_to_queue(queue, [run], by=ann)

    page = page_of(client, start(client, queue))

    assert "80 earlier messages" in page
    assert "the last 20 are" in page
    assert "question 30." in page
    assert "question 29." not in page
