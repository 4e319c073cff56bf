"""Queries that are compiled once."""

import pytest

from runs.models import Agent, Run
from runs.services.prepared import Prepared
from tests.make import make_agent, make_run, make_user

pytestmark = pytest.mark.django_db

RUNS = Prepared(
    lambda pk, source: Run.objects.select_related("agent__owner", "version").filter(
        pk=pk, source=source
    ),
    int,
    str,
)
AGENTS = Prepared(lambda slug: Agent.objects.filter(slug=slug), str)


def test_reads_what_the_orm_reads():
    run = make_run(title="é", inputs={"input": ["a", 1]})

    found = RUNS.first(run.pk, "page")
    plain = Run.objects.get(pk=run.pk)

    assert found == plain
    assert {
        f.attname: getattr(found, f.attname) for f in Run._meta.concrete_fields
    } == {f.attname: getattr(plain, f.attname) for f in Run._meta.concrete_fields}


def test_brings_related_rows_along(django_assert_max_num_queries):
    run = make_run(agent=make_agent(make_user("ann")))

    with django_assert_max_num_queries(1):
        found = RUNS.first(run.pk, "page")
        assert found.agent.owner.username == "ann"
        assert found.version is None


def test_each_call_has_its_own_values():
    one, two = make_agent(slug="one"), make_agent(slug="two")

    assert [AGENTS.first(slug) for slug in ("one", "two", "%s' OR 1=1")] == [
        one,
        two,
        None,
    ]
