"""Tokens, usage, providers and tools through the API."""

from datetime import date
from decimal import Decimal

import pytest
from django.contrib.auth.models import Permission

from runs.models import ApiToken, DailyRunStats, Provider
from runs.services.accounts import tokens
from tests.api.make_client import Api, fields_of
from tests.make import make_agent, make_provider, make_tool, make_user
from tools.models import Tool

pytestmark = pytest.mark.django_db

ALL = tuple(ApiToken.Scope.values)


def test_a_token_is_shown_once_and_works():
    ann = make_user()
    api = Api(ann, scopes=ALL)

    made = api.post("tokens", {"name": "CI", "scopes": ["read"]}).json()

    client = Api(None)
    client.headers["Authorization"] = f"Bearer {made['token']}"
    assert client.get("me").json()["scopes"] == ["read"]
    assert "token" not in api.get(f"tokens/{made['id']}").json()
    assert api.delete(f"tokens/{made['id']}").status_code == 204
    assert client.get("me").json()["code"] == "revoked_token"


def test_a_token_gives_no_more_than_it_has():
    api = Api(make_user(), scopes=["read", "admin"])

    refused = api.post("tokens", {"name": "x", "scopes": ["read", "build"]})

    assert (refused.status_code, fields_of(refused)) == (403, ["scopes"])
    assert ApiToken.objects.count() == 1


def test_the_number_of_tokens_is_limited(monkeypatch):
    assert tokens.MAX_TOKENS == 100
    monkeypatch.setattr(tokens, "MAX_TOKENS", 2)
    api = Api(make_user(), scopes=ALL)

    made, refused = (
        api.post("tokens", {"name": "x", "scopes": ["read"]}) for _ in range(2)
    )

    assert made.status_code == 201
    assert (refused.status_code, fields_of(refused)) == (409, ["tokens"])


def test_usage_is_summed_and_only_ones_own():
    ann, agent = make_user(), make_agent()
    for owner, runs in ((ann, 2), (ann, 3), (agent.owner, 50)):
        DailyRunStats.objects.create(
            day=date(2026, 11, runs % 28 + 1),
            agent=agent,
            owner=owner,
            status="succeeded",
            runs=runs,
            tokens=runs * 10,
            cost=Decimal(runs) / 100,
        )
    api = Api(ann)

    by_agent = api.get("usage?by=agent").json()["data"]
    one_day = api.get("usage?begin=2026-11-03&end=2026-11-03").json()["data"]

    assert by_agent == [
        {"key": agent.slug, "runs": 5, "tokens": 50, "cost": "0.050000"}
    ]
    assert [(row["key"], row["runs"]) for row in one_day] == [("2026-11-03", 2)]


def test_the_key_of_a_provider_is_written_and_never_read():
    ann = make_user()
    api = Api(ann, scopes=ALL)
    body = {"name": "Local", "base_url": "https://llm.example.org/v1", "key": "sk-1"}

    made = api.post("providers", body)
    changed = api.patch(f"providers/{made.json()['id']}", {"timeout": 5})

    provider = Provider.objects.get()
    assert (provider.key(), provider.timeout) == ("sk-1", 5)
    assert changed.json()["settings"]["has_key"]
    assert "sk-1" not in made.text + changed.text
    api.patch(f"providers/{provider.pk}", {"key": ""})
    assert Provider.objects.get().key() == ""


def test_a_refused_provider_names_its_field():
    provider = make_provider(name="First")
    api = Api(provider.owner, scopes=ALL)

    answer = api.patch(
        f"providers/{provider.pk}", {"name": "Second", "base_url": "ftp://x"}
    )

    assert (answer.status_code, fields_of(answer)) == (422, ["base_url"])
    assert Provider.objects.get().name == "First"


def make_manager():
    user = make_user(is_staff=True)
    user.user_permissions.set(
        Permission.objects.filter(content_type__app_label="tools")
    )
    return user


def test_a_tool_is_created_disabled_and_then_enabled():
    api = Api(make_manager(), scopes=ALL)
    entry = {
        "slug": "sum",
        "kind": "function",
        "config": {"function": "tools.builtin.calculator:calculator"},
    }

    made = api.post("tools", entry)
    on = api.patch(f"tools/{made.json()['id']}", {"enabled": True})

    assert (made.status_code, made.json()["enabled"]) == (201, False)
    assert on.json()["enabled"]
    again = api.post("tools", entry)
    assert (again.status_code, fields_of(again)) == (422, ["slug"])


def test_people_who_may_not_edit_a_tool_cannot_switch_it():
    tool = make_tool(visibility="everyone")

    answer = Api(make_user(), scopes=ALL).patch(f"tools/{tool.pk}", {"enabled": False})

    assert (answer.status_code, Tool.objects.get().enabled) == (403, True)


@pytest.mark.parametrize("text", ["0", "20261121", "1.5", "2026-11-31", "soon"])
def test_days_of_usage_are_dates(text):
    answer = Api(make_user()).get(f"usage?end={text}")

    assert (answer.status_code, fields_of(answer)) == (422, ["end"])
