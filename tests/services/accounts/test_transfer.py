"""Handing over what somebody owns."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from runs.services.accounts.transfer import (
    CannotTransfer,
    list_owned_rows,
    list_shared_uses,
    transfer_ownership,
)
from tests.make import (
    make_agent,
    make_prompt,
    make_provider,
    make_run,
    make_schedule,
    make_tool,
    make_user,
    make_webhook,
)
from tests.makers.scoring import make_rule
from tools.audit.entry import AuditEntry

pytestmark = pytest.mark.django_db


def make_leaver():
    """Return a user who owns one of everything, and is gone."""
    eve = make_user("eve", is_active=False)
    provider = make_provider(eve, name="Local")
    tool, words = make_tool(eve, name="pay"), make_prompt(eve, name="Words")
    agent = make_agent(eve, name="Desk", provider=provider, tools=(tool,), prompt=words)
    make_schedule(eve, agent=agent, name="daily")
    make_webhook(eve, name="hook")
    make_run(eve, agent=agent)
    return eve


def test_everything_but_what_is_personal_is_moved():
    eve, ada = make_leaver(), make_user("ada")
    make_schedule(ada, name="daily")
    agent = eve.schedules.get().agent
    run = agent.runs.get()

    assert transfer_ownership(eve, ada, by=None) == 5

    assert [(each.label, each.is_moved) for each in list_owned_rows(eve)] == [
        ("Webhooks", False)
    ]
    agent.refresh_from_db()
    run.refresh_from_db()
    rows = (agent, agent.provider, agent.prompt, agent.uses.get().tool)
    assert {row.owner for row in rows} == {ada}
    assert run.owner == eve
    names = sorted(ada.schedules.values_list("name", flat=True))
    assert names[0] == "daily"
    assert names[1].startswith("daily (")
    entry = AuditEntry.objects.filter(action="transferred").get()
    assert entry.changes == {"owner": ["eve", "ada"]}


def test_who_cannot_own_it_gets_nothing():
    eve = make_leaver()
    with pytest.raises(CannotTransfer, match="Select another user"):
        transfer_ownership(eve, eve, by=None)
    with pytest.raises(CannotTransfer, match="cannot sign in"):
        transfer_ownership(eve, make_user("gus", is_active=False), by=None)
    make_provider(eve, key_env="OPENAI_API_KEY")
    with pytest.raises(CannotTransfer, match="Select an administrator"):
        transfer_ownership(eve, make_user("bo"), by=None)
    assert eve.schedules.count() == 1


def test_the_command_lists_and_moves():
    make_leaver()
    make_user("ada")
    out = StringIO()
    call_command("transfer_ownership", "eve", "ada", dry_run=True, stdout=out)
    assert "Webhooks (not transferred): hook" in out.getvalue()
    assert "belong" not in out.getvalue()

    call_command("transfer_ownership", "eve", "ada", stdout=out)
    assert "5 objects now belong to ada." in out.getvalue()
    with pytest.raises(CommandError, match="not found"):
        call_command("transfer_ownership", "eve", "nobody")


def test_agents_that_deactivating_does_not_stop_are_listed():
    eve, ada = make_leaver(), make_user("ada")
    gone = make_user("gus", is_active=False)
    provider = eve.schedules.get().agent.provider
    make_agent(eve, name="Shared desk", provider=provider, visibility="everyone")
    make_agent(eve, name="Old", visibility="everyone", archived_at=timezone.now())
    make_agent(ada, name="Writer", provider=provider)
    make_agent(gone, name="Nobody's", provider=provider)
    make_agent(ada, name="Other")

    assert list_shared_uses(eve) == (["Shared desk"], ["Writer (ada)"])


def test_scoring_rules_are_listed_and_stay():
    eve, ada = make_user("eve"), make_user("ada")
    rule = make_rule(make_agent(eve), name="Polite")

    transfer_ownership(eve, ada, by=None)

    rule.refresh_from_db()
    assert rule.owner == eve
    assert [
        (each.label, each.names, each.is_moved) for each in list_owned_rows(eve)
    ] == [("Scoring rules", ["Polite"], False)]
