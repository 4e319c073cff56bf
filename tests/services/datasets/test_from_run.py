"""Runs that become examples, also from several people at the same time."""

import pytest

from runs.models import Example
from runs.services.datasets.from_run import add_run_to_dataset, add_runs_to_dataset
from runs.services.datasets.from_run import build_content_of_run as build_content
from runs.services.datasets.same_example import find_same_example
from tests.make import make_agent, make_dataset, make_user
from tests.makers.annotation import make_ended_run
from tests.support.threads import at_once


@pytest.mark.django_db(transaction=True)
def test_the_same_run_added_at_the_same_time_is_one_example():
    ann = make_user("ann")
    dataset, run = make_dataset(ann), make_ended_run(make_agent(ann))

    def add_selected() -> None:
        add_runs_to_dataset([run], dataset, by=ann)

    def add_or_update() -> None:
        add_run_to_dataset(run, dataset, build_content(run), by=ann, updates=True)

    at_once(*[add_selected, add_or_update] * 3)

    assert Example.objects.filter(dataset=dataset).count() == 1


def make_turn(agent, *earlier):
    """Make an ended run that asks "yes" after the given messages."""
    return make_ended_run(agent, "yes", given_turns=[list(turn) for turn in earlier])


@pytest.mark.django_db
def test_the_same_words_in_another_conversation_are_another_example():
    ann = make_user("ann")
    dataset, agent = make_dataset(ann), make_agent(ann)
    delete = make_turn(agent, ("Delete it?", "Sure?"))
    again = make_turn(agent, ("Delete it?", "Sure?"))
    keep = make_turn(agent, ("Keep it?", "Sure?"))
    alone = make_turn(agent)

    result = add_runs_to_dataset([delete, again, keep, alone], dataset, by=ann)

    assert (result.added, result.known) == (3, 1)
    sources = dataset.examples.order_by("number").values_list("source_run", flat=True)
    assert list(sources) == [delete.pk, keep.pk, alone.pk]
    found = find_same_example(dataset, build_content(keep), keep)
    assert found is not None
    assert found.source_run == keep
    assert add_runs_to_dataset([keep, alone], dataset, by=ann).known == 2


@pytest.mark.django_db
def test_the_earlier_messages_of_a_deleted_run_are_those_of_no_other_run():
    ann = make_user("ann")
    dataset, agent = make_dataset(ann), make_agent(ann)
    gone, alone = make_turn(agent, ("Delete it?", "Sure?")), make_turn(agent)
    add_runs_to_dataset([gone], dataset, by=ann)
    dataset.examples.update(source="chat", source_run=None)

    assert find_same_example(dataset, build_content(alone), alone) is None
