"""Rows read without the ORM: they equal what the ORM reads."""

import pytest

from runs.models import Agent, Run
from runs.store.fast_select import select_row
from tests.make import make_agent, make_run, make_user

pytestmark = pytest.mark.django_db


def columns(row):
    return {f.attname: getattr(row, f.attname) for f in row._meta.concrete_fields}


def test_reads_the_same_values_as_the_orm():
    run = make_run(
        title="é",
        inputs={"input": ["a", 1]},
        cost="0.1250",
        available_at="2999-01-01T00:00:00Z",
    )

    found = select_row(Run, id=run.pk)

    assert found == run
    assert columns(found) == columns(Run.objects.get(pk=run.pk))


def test_reads_related_rows_in_the_same_statement(django_assert_num_queries):
    run = make_run(agent=make_agent(make_user("ann")))
    plain = Run.objects.get(pk=run.pk)

    found = select_row(Run, ("spec", "agent", "agent__owner", "version"), id=run.pk)

    with django_assert_num_queries(0):
        assert found.agent.owner.username == "ann"
        assert found.version is None
    assert columns(found.spec) == columns(plain.spec)
    assert columns(found.agent) == columns(plain.agent)


def test_returns_none_without_a_row():
    make_agent(slug="one")

    assert select_row(Agent, slug="one").slug == "one"
    assert select_row(Agent, slug="%s' OR 1=1") is None
