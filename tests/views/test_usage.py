"""The usage page and its export."""

import csv
import io
import re
from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from runs.models import ProviderModel, Run
from runs.services.search.index_runs import index_runs
from tests.make import (
    make_agent,
    make_provider,
    make_run,
    make_spec,
    make_step,
    make_user,
)
from tests.support.html import strip_tags

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann(client):
    """A member, who is signed in."""
    user = make_user("ann", first_name="Ann", last_name="Lee")
    client.force_login(user)
    return user


@pytest.fixture
def root(client):
    """An administrator, who is signed in."""
    user = make_user("root", is_superuser=True)
    client.force_login(user)
    return user


def end_runs(owner, count=1, *, days=0, agent=None, **fields):
    """Make runs that ended some days ago and are indexed."""
    agent = agent or make_agent(owner)
    fields = {"status": "succeeded", "cost": "0.5", "input_tokens": 100, **fields}
    runs = [make_run(owner, agent=agent, **fields) for _ in range(count)]
    at = timezone.now() - timedelta(days=days)
    Run.objects.filter(pk__in=[run.pk for run in runs]).update(created_at=at)
    index_runs()
    return runs


def rows_of(page, table):
    """Return the cells of a table, as a person reads them."""
    part = page.split(f'id="usage-table-{table}"')[1].split("</section>")[0]
    body = part.split("<tbody>")[1].split("</tbody>")[0]
    return [
        [strip_tags(f"<td{cell}") for cell in row.split("<td")[1:]]
        for row in body.split("</tr>")[:-1]
    ]


def exported(client, query=""):
    answer = client.get(f"/usage/export/{query}")
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    return list(csv.reader(io.StringIO(answer.content.decode())))


def test_usage_is_split_by_agent_and_model(client, ann):
    dear = make_agent(ann, name="dear")
    spec = make_spec(model={"model": "big"})
    end_runs(ann, 3, agent=dear, spec=spec)
    end_runs(ann, 1, agent=make_agent(ann, name="cheap"), cost="0.1")

    page = client.get("/usage/").text

    assert rows_of(page, "agent") == [
        ["dear", "$1.50", "", "300", "3"],
        ["cheap", "$0.1000", "", "100", "1"],
    ]
    assert [row[0] for row in rows_of(page, "model")] == ["big", "model-a"]


def test_a_row_says_how_it_changed_since_as_much_time_before(client, ann):
    agent = make_agent(ann, name="steady")
    end_runs(ann, 2, days=8, agent=agent)
    end_runs(ann, 3, agent=agent)

    page = client.get("/usage/?range=7d").text

    assert rows_of(page, "agent") == [["steady", "$1.50", "+50%", "300", "3"]]


def test_runs_of_runs_cost_and_are_not_counted_as_runs(client, ann):
    agent = make_agent(ann, name="lead")
    [lead] = end_runs(ann, 1, agent=agent)
    end_runs(ann, 1, agent=agent, parent_step=make_step(lead))

    page = client.get("/usage/").text

    [(name, cost, _change, _tokens, runs)] = rows_of(page, "agent")
    assert (name, cost, runs) == ("lead", "$1.00", "1")


def test_members_see_their_own_usage_only(client, ann):
    end_runs(make_user("bob"), 5)
    end_runs(ann, 1)

    page = client.get("/usage/?by=person&mine=0").text

    assert [row[-1] for row in rows_of(page, "agent")] == ["1"]
    assert "usage-table-person" not in page
    assert exported(client, "?by=person")[0][2] == "agent"
    assert len(exported(client)) == 2


def test_administrators_see_who_used_what(client, root):
    end_runs(make_user("bob", first_name="Bob", last_name="Ray"), 2)
    end_runs(root, 1)

    page = client.get("/usage/?by=person").text

    assert rows_of(page, "person") == [
        ["Bob Ray", "$1.00", "", "200", "2"],
        ["root", "$0.5000", "", "100", "1"],
    ]
    assert "usage-table-person" not in client.get("/usage/?mine=1").text


def test_an_agent_that_is_not_visible_has_no_name(client, ann):
    hidden = make_agent(make_user("bob"), name="secret plan")
    end_runs(ann, 1, agent=hidden)

    page = client.get("/usage/").text

    assert "secret plan" not in page
    assert rows_of(page, "agent")[0][0] == "Unavailable agent"


def test_without_prices_tokens_are_ranked_and_drawn(client, ann):
    end_runs(ann, 1, cost=0, input_tokens=1500)

    page = client.get("/usage/").text

    assert "Tokens by day" in page
    assert rows_of(page, "agent")[0][1:] == ["", "1,500", "1"]


def test_models_without_a_price_are_named_with_a_link(client, ann):
    mine = make_provider(ann)
    agent = make_agent(ann, provider=mine)
    for name, cost in (("a", 1), ("b", 0), ("free", 0)):
        spec = make_spec(model={"model": name})
        end_runs(ann, 1, agent=agent, spec=spec, cost=cost, input_tokens=600)
    unpriced = ProviderModel.objects.create(provider=mine, name="b")
    ProviderModel.objects.create(provider=mine, name="free", input_price=0)

    page = client.get("/usage/").text
    note = page.split('id="usage-unpriced"')[1].split("</p>")[0]

    said = " ".join(strip_tags(f"<p{note}").split())
    assert "1 model has no price: b. 33% of the tokens" in said
    assert f'href="/providers/{mine.pk}/models/{unpriced.pk}/"' in note
    ProviderModel.objects.filter(pk=unpriced.pk).update(input_price=1)
    assert "usage-unpriced" not in client.get("/usage/").text


def test_a_bar_leads_to_the_runs_of_its_day(client, ann):
    end_runs(ann, 2)

    page = client.get("/usage/?range=7d").text

    day = timezone.localdate().isoformat()
    bars = re.findall(r'<a href="(/runs/[^"]*)" aria-label="([^"]*)"', page)
    assert len(bars) == 7
    assert bars[-1][0] == f"/runs/?tests=with&amp;begin={day}&amp;end={day}"
    assert bars[-1][1].endswith(": $1.00, 200 tokens")


def test_the_legend_adds_up_what_has_no_color(client, ann):
    for number in range(6):
        end_runs(ann, 1, agent=make_agent(ann, name=f"agent-{number}"), cost="0.5")

    page = client.get("/usage/").text

    legend = strip_tags(page.split('class="stacklegend"')[1].split("</ul>")[0])
    assert "Others $1.00 33%" in legend


def test_the_export_has_a_line_for_each_day_and_agent(client, ann):
    agent = make_agent(ann, name="=planner")
    end_runs(ann, 2, agent=agent)
    end_runs(ann, 1, days=2, agent=agent)

    head, *lines = exported(client, "?range=7d")

    assert head == ["day", "agent_id", "agent", "runs", "tokens", "cost"]
    assert [line[1:] for line in lines] == [
        [str(agent.pk), "'=planner", "1", "100", "0.500000"],
        [str(agent.pk), "'=planner", "2", "200", "1.000000"],
    ]
    total = sum(Decimal(line[-1]) for line in lines)
    assert total == Decimal("1.5")


def test_a_period_without_runs_says_so(client, ann):
    end_runs(ann, 1, days=20)

    assert "No runs in this period" in client.get("/usage/?range=7d").text
    assert "No runs in this period" not in client.get("/usage/?range=30d").text


def test_says_what_test_runs_cost(client, ann):
    end_runs(ann, 1, cost="0.5")
    assert "tests and experiments" not in client.get("/usage/").text

    end_runs(ann, 3, cost="0.5", is_test=True)

    page = client.get("/usage/").text
    assert "3 runs of tests and experiments are included; they cost $1.50." in page


def test_questions_to_the_database_do_not_grow_with_rows(
    client, root, django_assert_max_num_queries
):
    for number in range(8):
        end_runs(make_user(f"person-{number}"), 1)

    with django_assert_max_num_queries(30):
        client.get("/usage/?by=person")


def test_test_runs_without_a_price_have_no_cost(client, ann):
    end_runs(ann, 2, cost=0, is_test=True)

    note = client.get("/usage/").text.split('id="usage-tests"')[1].split("</p>")[0]

    said = " ".join(strip_tags(f"<p{note}").split())
    assert said == "2 runs of tests and experiments are included."
