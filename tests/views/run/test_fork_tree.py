"""The tree of forks on the run page."""

import pytest

from tests.make import make_call, make_run, make_step, make_user

pytestmark = pytest.mark.django_db


def fork_of(run, owner=None, **fields):
    fields = {"fork_index": 1, "fork_row": 2, "status": "succeeded", **fields}
    return make_run(owner or run.owner, forked_from=run, **fields)


def tree(client, run) -> list[tuple[int, int, bool]]:
    relatives = client.get(f"/runs/{run.pk}/").context["family"].nodes
    return [(one.run.pk, one.depth, one.is_here) for one in relatives]


def test_a_run_without_forks_shows_none(client, ann):
    run = make_run(ann, status="succeeded")

    assert tree(client, run) == []


def test_every_run_of_the_tree_shows_the_whole_tree(client, ann):
    root = make_run(ann, status="failed")
    first, second = fork_of(root), fork_of(root)
    below = fork_of(first)

    shape = [(root.pk, 0), (first.pk, 1), (below.pk, 2), (second.pk, 1)]
    for run in (root, first, below, second):
        assert tree(client, run) == [(*one, one[0] == run.pk) for one in shape]


def test_a_fork_links_its_parent_and_the_comparison_with_it(client, ann):
    root = make_run(ann, status="failed")
    fork = fork_of(root, fork_edits=["observation"])
    text = client.get(f"/runs/{fork.pk}/").content.decode()

    assert f'href="/runs/{root.pk}/?step=2"' in text
    assert f'href="/runs/compare/?a={root.pk}&amp;b={fork.pk}"' in text
    assert "fork at step 2, edited result" in text


def test_hides_relatives_of_someone_else(client, ann):
    root = make_run(make_user("bob"), status="failed")
    fork = fork_of(root, ann)
    text = client.get(f"/runs/{fork.pk}/").content.decode()

    assert tree(client, fork) == []
    assert "Fork of a deleted run" in text


def test_reused_rows_have_no_time_and_say_what_they_are(client, ann):
    run = fork_of(make_run(ann), fork_index=2)
    call = make_call(run, is_copied=True)
    make_step(run, call=call, is_copied=True)
    make_step(run, call=call, is_copied=True, is_edited=True)
    text = client.get(f"/runs/{run.pk}/").content.decode()

    assert text.count(">reused</span>") == 2
    assert ">edited</span>" in text
    assert "<rect" not in text.split('id="run-steps"')[1].split("</ol>")[0]
