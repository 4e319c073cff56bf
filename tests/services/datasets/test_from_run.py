"""Runs that become examples, also from several people at the same time."""

import pytest

from runs.models import Example
from runs.services.datasets.from_run import add_run_to_dataset, add_runs_to_dataset
from runs.services.datasets.from_run import build_content_of_run as build_content
from tests.annotation import make_ended_run
from tests.make import make_agent, make_dataset, make_user
from tests.threads import at_once


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
