"""What people think of a run: rating, tags and comments on its page."""

import re

import pytest

from runs.models import Conversation, Run, RunComment, RunTag
from runs.services.experiments.create import (
    CandidateChoice,
    ExperimentPlan,
    create_experiment,
)
from tests.make import make_agent, make_run, make_user
from tests.makers.annotation import make_queue, score_next
from tests.makers.experiments import end_runs, make_examples, make_revision, turn
from tests.support.html import strip_tags

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}


@pytest.fixture
def run(ann):
    return make_run(ann, status="succeeded")


def test_a_rating_is_given_changed_and_taken_back(client, run):
    ratings = []
    for rating in ("good", "bad", "bad"):
        page = client.post(f"/runs/{run.pk}/rate/", {"rating": rating}, headers=HTMX)
        ratings.append(Run.objects.get().rating)
        pressed = page.content.decode().count('aria-pressed="true"')
        assert pressed == (ratings[-1] is not None)

    assert ratings == [1, -1, None]


def test_the_rating_in_a_chat_is_a_score_of_its_user(client, ann):
    conversation = Conversation.objects.create(
        owner=ann, agent=make_agent(ann), title="Trip"
    )
    run = make_run(
        ann, agent=conversation.agent, conversation=conversation, status="succeeded"
    )

    page = client.post(f"/runs/{run.pk}/rate/", {"rating": "bad"}, headers=HTMX)

    said = strip_tags(page.content.decode())
    assert "ann user of the chat Not passed 0.00" in said
    answer = client.get(f"/api/v1/runs/{run.pk}/scores").json()
    [score] = answer["scores"]
    assert (score["source"], score["name"]) == ("chat_user", "ann")
    assert (score["value"], score["passed"]) == (0.0, False)


def test_the_rating_of_another_run_is_a_score_of_a_person(client, run):
    page = client.post(f"/runs/{run.pk}/rate/", {"rating": "good"}, headers=HTMX)

    assert "ann person Passed 1.00" in strip_tags(page.content.decode())


def test_scores_of_evaluators_are_shown_with_their_reasons(client, ann):
    experiment = create_experiment(
        make_examples(ann, 1),
        [CandidateChoice(make_agent(ann))],
        [make_revision(ann)],
        by=ann,
        plan=ExperimentPlan(),
    )
    turn(experiment)
    end_runs(experiment, "no")
    turn(experiment)
    run = Run.objects.get()

    page = client.get(f"/runs/{run.pk}/feedback/", headers=HTMX).content.decode()

    assert "Contains evaluator Not passed 0.00 Not found" in strip_tags(page)
    [score] = client.get(f"/api/v1/runs/{run.pk}/scores").json()["scores"]
    assert (score["source"], score["passed"]) == ("evaluator", False)


def test_marks_of_others_appear_after_ones_own(client, ann):
    queue = make_queue(ann, runs=1, people_per_run=2)
    score_next(queue, make_user("bob"), 4, comment="Fine")
    url = f"/api/v1/runs/{Run.objects.get().pk}/scores"
    assert client.get(url).json() == {"scores": []}

    score_next(queue, ann, 1)

    found = client.get(url).json()["scores"]
    assert [(one["name"], one["value"], one["passed"]) for one in found] == [
        ("bob", 0.75, True),
        ("ann", 0.0, False),
    ]


def test_a_bad_answer_can_be_added_to_a_dataset(client, run):
    link = f'href="/runs/{run.pk}/dataset/"'
    pages = [
        client.post(f"/runs/{run.pk}/rate/", {"rating": rating}, headers=HTMX)
        for rating in ("good", "bad")
    ]

    assert [link in page.content.decode() for page in pages] == [False, True]


def test_a_tag_is_added_once_and_removed(client, run):
    for _ in range(2):
        client.post(f"/runs/{run.pk}/tag/", {"add": "  to \x00 check "})
    assert [tag.name for tag in RunTag.objects.all()] == ["to check"]

    page = client.post(f"/runs/{run.pk}/tag/", {"remove": "to check"}, headers=HTMX)

    assert "to check" not in page.content.decode()
    assert not RunTag.objects.exists()


@pytest.mark.parametrize("name", ["", "x" * 41])
def test_a_tag_that_cannot_be_stored_is_refused_beside_its_field(client, run, name):
    page = client.post(f"/runs/{run.pk}/tag/", {"add": name})

    assert "Enter a tag of 1 to 40 characters." in page.content.decode()
    assert not RunTag.objects.exists()


def test_a_run_has_a_limited_number_of_tags(client, run):
    RunTag.objects.bulk_create(RunTag(run=run, name=f"tag {n}") for n in range(20))

    page = client.post(f"/runs/{run.pk}/tag/", {"add": "one more"}, headers=HTMX)

    assert "A run has at most 20 tags." in page.content.decode()
    assert RunTag.objects.count() == 20


def test_a_comment_is_shown_as_it_was_written(client, run):
    client.post(f"/runs/{run.pk}/comment/", {"text": "Wrong <city>.\r\nAgain?"})

    page = client.get(f"/runs/{run.pk}/").content.decode()

    assert "Wrong &lt;city&gt;.\nAgain?" in page
    assert RunComment.objects.get().author == run.owner


@pytest.mark.parametrize("text", [" ", "x" * 4001])
def test_a_refused_comment_stays_in_its_field(client, run, text):
    page = client.post(f"/runs/{run.pk}/comment/", {"text": text}, headers=HTMX)

    assert 'id="run-comment-error"' in page.content.decode()
    assert text in page.content.decode()
    assert not RunComment.objects.exists()


def test_only_its_author_and_administrators_delete_a_comment(client, run):
    boss, other = make_user("boss", is_superuser=True), make_user("other")
    first, second = (
        RunComment.objects.create(run=run, author=author, text="x")
        for author in (other, other)
    )
    client.post(f"/runs/{run.pk}/comments/{first.pk}/delete/")
    assert RunComment.objects.count() == 2

    client.force_login(boss)
    client.post(f"/runs/{run.pk}/comments/{second.pk}/delete/")

    assert list(RunComment.objects.all()) == [first]


@pytest.mark.parametrize("headers", [{}, HTMX])
def test_a_deleted_comment_is_restored_once_by_its_undo(client, ann, run, headers):
    comment = RunComment.objects.create(run=run, author=ann, text="<b>kept</b>")

    url = f"/runs/{run.pk}/comment/"
    delete_url = f"/runs/{run.pk}/comments/{comment.pk}/delete/"
    deleted = client.post(delete_url, headers=headers, follow=True)
    undo = re.search('name="restore" value="([^"]+)"', deleted.text)
    assert "Comment deleted." in deleted.text
    assert not RunComment.objects.exists()
    assert undo
    for _ in range(2):
        client.post(url, {"restore": undo[1]}, headers=headers)

    again = RunComment.objects.get()
    assert (again.author, again.text) == (ann, "<b>kept</b>")
    assert again.created_at == comment.created_at
    page = client.post(url, {"restore": f"{undo[1]}x"}, headers=headers).text
    assert "can no longer be restored" in page


def test_strangers_neither_read_nor_write(client, run):
    client.force_login(make_user("eve"))

    answers = [client.get(f"/runs/{run.pk}/feedback/").status_code]
    for address in ("rate", "tag", "comment"):
        answers.append(client.post(f"/runs/{run.pk}/{address}/").status_code)

    assert answers == [404] * 4


def test_an_input_of_one_text_is_shown_as_text(client, ann):
    run = make_run(ann, status="succeeded", inputs={"input": "Two\nlines"})

    page = client.get(f"/runs/{run.pk}/?step=0").content.decode()

    assert '<p class="plain-text">Two\nlines</p>' in page


def test_a_fork_says_what_was_changed(client, ann):
    parent = make_run(ann, status="succeeded")
    fork = make_run(
        ann,
        forked_from=parent,
        fork_index=0,
        fork_row=2,
        fork_edits=["observation", "model"],
    )

    page = " ".join(client.get(f"/runs/{fork.pk}/").content.decode().split())

    assert "at step 2: edited result, other model." in page
