"""The card of what needs attention."""

from datetime import timedelta

import pytest
from django.utils import timezone

from runs.models import Decision, ProviderOutage
from runs.views.home.attention import MAX_ITEMS
from tests.make import (
    make_agent,
    make_decision,
    make_provider,
    make_run,
    make_schedule,
    make_step,
    make_webhook,
    make_worker,
)
from tests.support.html import strip_tags

pytestmark = pytest.mark.django_db


def ask(owner, tool, *, hours=None, question="approval", agent=None):
    """Make an open decision that expires in some hours."""
    agent = agent or make_agent(owner)
    status = f"awaiting_{'approval' if question == 'approval' else 'decision'}"
    run = make_run(owner, agent=agent, status=status)
    expires_at = timezone.now() + timedelta(hours=hours) if hours else None
    step = make_step(run, tool=tool, status="awaiting_approval")
    return make_decision(step, question=question, expires_at=expires_at)


def load_card(client, query=""):
    page = client.get(f"/{query}").text
    return page.split('id="home-attention"')[1].split("</section>")[0]


def list_rows(card):
    return [" ".join(strip_tags(row).split()) for row in card.split("<li ")[1:]]


def test_many_equal_approvals_hide_no_other_decision(client, ann):
    agent = make_agent(ann)
    for _ in range(45):
        ask(ann, "mass_mail", hours=1, agent=agent)
    ask(ann, "wire_transfer", hours=9, agent=agent)
    for _ in range(2):
        ask(ann, "send_email", question="outcome", agent=agent)

    card = load_card(client)

    first, second, third = list_rows(card)
    assert "Approval required: mass_mail 45" in first
    assert "Approval required: wire_transfer" in second
    assert "Unknown outcome: send_email 2" in third
    assert '<span class="count" data-tone="need">48</span>' in card


def test_a_row_describes_the_most_urgent_of_equal_decisions(client, ann):
    ask(ann, "refund")
    urgent = ask(ann, "refund", hours=1, agent=make_agent(ann, name="Cashier"))
    ask(ann, "refund", hours=5)

    card = load_card(client)

    assert f'id="home-decision-{urgent.pk}"' in card
    assert "Cashier" in card
    assert card.count("<li ") == 1


def test_the_last_row_counts_decisions_that_are_not_shown(client, ann):
    agent = make_agent(ann)
    for n in range(MAX_ITEMS + 2):
        for _ in range(2):
            ask(ann, f"tool_{n}", hours=n + 1, agent=agent)

    card = load_card(client)

    *shown, last = card.split("<li ")[1:]
    assert len(shown) == MAX_ITEMS
    assert "4 more" in last
    assert 'href="/approvals/"' in last
    assert f'data-tone="need">{2 * MAX_ITEMS + 4}<' in card


def test_other_kinds_are_counted_too(client, ann):
    run = make_run(ann, status="failed")
    since = timezone.now() - timedelta(hours=1)
    for n in range(MAX_ITEMS + 1):
        make_schedule(ann, name=f"Plan {n}", last_run=run)
        make_webhook(ann, name=f"Hook {n}", failing_since=since)
        provider = make_provider(ann, name=f"Server {n}")
        ProviderOutage.objects.create(
            provider=provider, started_at=since, probe_at=since
        )

    card = load_card(client)

    for url in ("/schedules/", "/webhooks/", "/providers/"):
        row = card.split(f'href="{url}"')[0].rsplit("<li ", 1)[1]
        assert "1 more" in row
    assert f'data-tone="need">{3 * MAX_ITEMS + 3}<' in card


def test_more_decisions_take_no_more_queries(
    client, ann, django_assert_max_num_queries, django_assert_num_queries
):
    agent = make_agent(ann)
    ask(ann, "refund", agent=agent)
    with django_assert_max_num_queries(40) as before:
        client.get("/home/attention/")
    for n in range(30):
        ask(ann, f"tool_{n}", agent=agent)

    with django_assert_num_queries(len(before)):
        client.get("/home/attention/")


def test_the_decisions_of_an_administrator_are_not_looked_up_among_all_runs(admin_user):
    rows = Decision.objects.visible_to(admin_user).open()

    assert "runs_run" not in str(rows.query)


def test_the_decisions_of_a_member_are_found_without_a_list_of_their_runs(ann):
    query = str(Decision.objects.visible_to(ann).open().query)

    assert 'SELECT U0."id" FROM "runs_run"' not in query
    assert query.count('JOIN "runs_run"') == 1


def test_an_open_page_says_that_no_worker_is_running_while_that_is_so(client, ann):
    worker = make_worker()
    make_run(ann)

    def poll(part):
        state = part.split('"X-List-State": "')[1].split('"')[0]
        return client.get("/home/attention/", headers={"X-List-State": state})

    page = load_card(client)
    assert poll(page).status_code == 204
    worker.delete()
    alone = poll(page)
    assert poll(alone.text).status_code == 204
    make_run(ann)
    more = poll(alone.text).text
    make_worker()
    back = poll(more).text

    assert 'data-tone="bad"' not in page.split("</div>")[0] + back
    assert "No worker is running, 1 run waiting." in alone.text
    assert "No worker is running, 2 runs waiting." in more
    assert 'class="attn b12"' in alone.text
    assert "none" in back
