"""The API tokens of other accounts, and service accounts on the pages."""

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.core.management import CommandError, call_command
from django.utils import timezone

from runs.models import ApiToken, LoginLink
from runs.services.accounts.login_link import is_valid_login_link
from runs.services.accounts.tokens import create_token, hash_token
from runs.services.accounts.transfer import transfer_ownership
from tests.api.make_client import Api
from tests.make import make_agent, make_prompt, make_user, make_version
from tools.accounts.save import create_service_account
from tools.models import AuditEntry

pytestmark = pytest.mark.django_db

ADD = "/admin/auth/user/add/?kind=service"


@pytest.fixture
def root(client):
    user = make_user("root", is_superuser=True)
    client.force_login(user)
    return user


def make_bot(name="bot"):
    bot = User(username=name)
    create_service_account(bot)
    return bot


def make_helper(*codenames):
    user = make_user("helper", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    return user


def test_a_service_account_is_created_on_the_page_of_users(client, root):
    crew = Group.objects.create(name="crew")
    assert ADD in client.get("/admin/auth/user/").text
    page = client.get(ADD).text
    assert "New service account" in page
    assert 'name="password' not in page

    form = {"username": "bot", "description": "Nightly report", "groups": [crew.pk]}
    answer = client.post(ADD, {**form, "is_superuser": "on"}, follow=True)

    bot = User.objects.get(username="bot")
    assert bot.service_account.description == "Nightly report"
    assert list(bot.groups.all()) == [crew]
    assert not bot.has_usable_password()
    assert not bot.is_superuser
    assert f"/users/{bot.pk}/tokens/" in answer.text
    assert f"/{bot.pk}/password/" not in answer.text
    assert "Service account" in client.get("/admin/auth/user/").text


def test_a_service_account_is_changed_and_disabled(client, root):
    bot = make_bot()
    url = f"/admin/auth/user/{bot.pk}/change/"

    client.post(url, {"username": "bot", "description": "Reports"})

    bot = User.objects.get(pk=bot.pk)
    assert (bot.is_active, bot.service_account.description) == (False, "Reports")
    entry = AuditEntry.objects.filter(noun="user", thing_number=bot.pk).first()
    assert (entry.by, entry.changes) == ("root", {"description": ["", "Reports"]})
    rows = client.get("/admin/auth/user/?kind=service").text
    assert "Disabled service account" in rows
    assert "root</a>" not in rows


def test_a_service_account_gets_no_password_and_no_superuser(client, root):
    bot = make_bot()
    secret = {"password1": "a-long-enough-one", "password2": "a-long-enough-one"}

    answer = client.post(f"/admin/auth/user/{bot.pk}/password/", secret)
    client.post(
        f"/admin/auth/user/{bot.pk}/change/",
        {"username": "bot", "is_active": "on", "is_superuser": "on"},
    )

    assert answer.status_code == 403
    bot = User.objects.get(pk=bot.pk)
    assert not bot.has_usable_password()
    assert not bot.is_superuser


def test_staff_who_may_only_view_users_see_the_description(client):
    bot = make_bot()
    client.force_login(make_helper("view_user"))
    bot.service_account.description = "Nightly report"
    bot.service_account.save()

    page = client.get(f"/admin/auth/user/{bot.pk}/change/")

    assert "Nightly report" in page.text
    assert f"/users/{bot.pk}/tokens/" not in page.text


def test_a_service_account_cannot_sign_in(client):
    bot = make_bot()
    bot.set_password("a-long-enough-one")  # as `manage.py changepassword` does
    bot.save()

    form = {"username": "bot", "password": "a-long-enough-one"}
    page = client.post("/sign-in/", form)

    assert "This is a service account." in page.text
    assert "_auth_user_id" not in client.session


def test_a_service_account_gets_no_login_link():
    bot = make_bot()
    LoginLink.objects.create(
        user=bot, digest=hash_token("link"), expires_at="2100-01-01T00:00Z"
    )

    with pytest.raises(CommandError, match="bot is a service account"):
        call_command("login_link", "bot")
    assert not is_valid_login_link("link")


def test_a_token_of_a_service_account_is_shown_once_and_revoked(client, root):
    bot = make_bot()
    url = f"/users/{bot.pk}/tokens/"
    form = {"name": "CI", "scopes": ["read"], "days": "30"}

    page = client.post(url, form, follow=True).text

    [secret] = re.findall(r"as_[\w-]{20,}", page)
    assert secret not in client.get(url).text
    assert secret not in str(list(AuditEntry.objects.values()))
    api = Api(None)
    api.headers["Authorization"] = f"Bearer {secret}"
    assert api.get("me").json()["username"] == "bot"
    assert "last used" in client.get(url).text
    client.post(f"{url}{ApiToken.objects.get().pk}/renew/")
    left = ApiToken.objects.get().expires_at - timezone.now()
    assert left > timedelta(days=89)
    client.post(f"{url}{ApiToken.objects.get().pk}/revoke/")
    assert api.get("me").status_code == 200
    client.post(f"{url}{ApiToken.objects.get().pk}/revoke/", {"sure": "1"})
    assert api.get("me").status_code == 401


def test_tokens_of_a_person_are_only_revoked(client, root):
    eve = make_user("eve")
    create_token(eve, "Script")
    url = f"/users/{eve.pk}/tokens/"

    assert "Create token" not in client.get(url).text
    form = {"name": "CI", "scopes": ["read"], "days": "30"}
    assert client.post(url, form).status_code == 403
    assert eve.api_tokens.count() == 1
    client.post(f"{url}{eve.api_tokens.get().pk}/revoke/", {"sure": "1"})
    assert eve.api_tokens.get().revoked_at is not None


def test_staff_reach_no_tokens_of_accounts_with_further_permissions(client):
    bot, strong = make_bot(), make_bot("strong")
    strong.user_permissions.add(Permission.objects.get(codename="add_tool"))
    client.force_login(make_helper("change_user"))
    form = {"name": "CI", "scopes": ["read"], "days": "30"}

    assert client.post(f"/users/{strong.pk}/tokens/", form).status_code == 403
    assert not strong.api_tokens.exists()
    assert client.post(f"/users/{bot.pk}/tokens/", form).status_code == 302
    client.force_login(make_user("plain"))
    assert client.get(f"/users/{bot.pk}/tokens/").status_code == 403


def test_the_number_of_tokens_is_limited(client, root, monkeypatch):
    monkeypatch.setattr("runs.services.accounts.tokens.MAX_TOKENS", 1)
    bot = make_bot()
    create_token(bot)
    create_token(root)
    form = {"name": "CI", "scopes": ["read"], "days": "30"}

    for url in (f"/users/{bot.pk}/tokens/", "/account/tokens/"):
        assert "At most 1 tokens per user." in client.post(url, form).text
    assert bot.api_tokens.count() == 1


def test_runs_and_the_audit_log_name_the_service_account():
    bot = make_bot()
    agent = make_agent(bot)
    make_version(agent)
    api = Api(bot, scopes=ApiToken.Scope.values)

    run = api.post("runs", {"agent": agent.slug, "inputs": {"input": "hello"}})
    prompt = {"name": "Words", "kind": "tool-calling", "template": "Hi {input}"}
    assert api.post("prompts", prompt).status_code == 201

    assert run.status_code == 201
    assert bot.runs.get().pk == run.json()["id"]
    assert AuditEntry.objects.filter(noun="prompt", by="bot", way="api").exists()


def test_what_a_service_account_owns_is_transferred_in_both_directions():
    bot, ada = make_bot(), make_user("ada")
    prompt = make_prompt(bot, name="Words")

    assert transfer_ownership(bot, ada, by=None) == 1
    assert transfer_ownership(ada, bot, by=None) == 1

    prompt.refresh_from_db()
    assert prompt.owner == bot
