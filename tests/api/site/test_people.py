"""People and service accounts through the API."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.utils import timezone

from runs.models import ApiToken
from tests.api.make_client import Api, fields_of
from tests.make import make_user
from tools.accounts.save import create_service_account
from tools.models import AuditEntry

pytestmark = pytest.mark.django_db

ALL = tuple(ApiToken.Scope.values)
BOT = {"username": "bot", "kind": "service", "description": "Nightly report"}


def admin_api(**token):
    return Api(make_user("root", is_superuser=True), **{"scopes": ALL, **token})


def make_helper(*codenames, name="helper"):
    """Return staff with some permissions on users."""
    user = make_user(name, is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    return user


def make_strong_group(codename="add_tool"):
    group = Group.objects.create(name="strong")
    group.permissions.add(Permission.objects.get(codename=codename))
    return group


def make_bot(name="bot"):
    bot = User(username=name)
    create_service_account(bot)
    return bot


def test_a_service_account_is_created_with_a_token_that_acts_as_it():
    Group.objects.create(name="crew")
    api = admin_api()

    made = api.post("people", {**BOT, "groups": ["crew"]})
    token = api.post(
        f"people/{made.json()['id']}/tokens",
        {"name": "CI", "scopes": ["read", "run"], "days": 7},
    )

    assert (made.status_code, token.status_code) == (201, 201)
    client = Api(None)
    client.headers["Authorization"] = f"Bearer {token.json()['token']}"
    me = client.get("me").json()
    assert (me["username"], me["kind"], me["groups"]) == ("bot", "service", ["crew"])
    assert me["scopes"] == ["read", "run"]
    left = ApiToken.objects.get(pk=token.json()["id"]).expires_at - timezone.now()
    assert timedelta(days=6) < left < timedelta(days=7)
    shown = api.get(f"people/{made.json()['id']}").json()
    assert shown["token_used_at"] is not None
    by = AuditEntry.objects.filter(noun="API token").first().by
    assert by == "root"


def test_no_token_of_a_service_account_exceeds_that_of_its_creator():
    bot = make_bot()
    api = admin_api(scopes=["read", "admin"])

    refused = api.post(
        f"people/{bot.pk}/tokens", {"name": "x", "scopes": ["read", "build"]}
    )

    assert (refused.status_code, fields_of(refused)) == (403, ["scopes"])
    assert not bot.api_tokens.exists()


def test_nobody_creates_a_token_of_another_person():
    eve = make_user("eve")
    api = admin_api()

    refused = api.post(f"people/{eve.pk}/tokens", {"name": "x", "scopes": ["read"]})

    assert refused.status_code == 403
    assert not eve.api_tokens.exists()


def test_tokens_of_others_are_listed_without_secrets_and_revoked():
    eve = make_user("eve")
    client, api = Api(eve), admin_api()

    [row] = api.get(f"people/{eve.pk}/tokens").json()["data"]
    assert row["token"] == "" if "token" in row else True
    assert api.delete(f"people/{eve.pk}/tokens/{row['id']}").status_code == 204

    assert client.get("me").json()["code"] == "revoked_token"


def test_a_token_is_found_only_below_its_own_account():
    eve, bot = make_user("eve"), make_bot()
    Api(eve)

    path = f"people/{bot.pk}/tokens/{eve.api_tokens.get().pk}"

    assert admin_api().get(path).status_code == 404
    assert admin_api().delete(path).status_code == 404


def test_a_disabled_service_account_opens_nothing():
    bot = make_bot()
    client = Api(bot)

    answer = admin_api().patch(f"people/{bot.pk}", {"is_active": False})

    assert (answer.status_code, answer.json()["is_active"]) == (200, False)
    assert client.get("me").status_code == 401


def test_a_person_has_a_password_that_is_never_shown():
    api = admin_api()
    secret = "a-long-enough-one"

    made = api.post("people", {"username": "new", "password": secret})

    assert User.objects.get(username="new").check_password(secret)
    assert secret not in made.text
    assert secret not in str(list(AuditEntry.objects.values()))
    refused = api.post("people", {"username": "other", "password": "123"})
    assert set(fields_of(refused)) == {"password"}
    assert not User.objects.filter(username="other").exists()


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({**BOT, "password": "a-long-enough-one"}, "password"),
        ({**BOT, "email": "a@example.com"}, "email"),
        ({**BOT, "is_superuser": True}, "is_superuser"),
        ({"username": "x", "description": "no bot"}, "description"),
        ({"username": "x", "email": "nowhere"}, "email"),
        ({"username": "a b"}, "username"),
        ({"username": "root"}, "username"),
        ({"username": "x", "groups": ["nobody"]}, "groups"),
    ],
)
def test_a_refused_account_names_its_field(body, field):
    api = admin_api()

    refused = api.post("people", body)

    assert (refused.status_code, fields_of(refused)) == (422, [field])
    assert User.objects.count() == 1


def test_repeating_a_creation_creates_nothing_and_shows_no_secret():
    api = admin_api()

    first = api.post("people", BOT, Idempotency_Key="a")
    again = api.post("people", BOT, Idempotency_Key="a")
    path, body = f"people/{first.json()['id']}/tokens", {"name": "x", "scopes": ["run"]}
    token = api.post(path, body, Idempotency_Key="b")
    repeated = api.post(path, body, Idempotency_Key="b")

    assert (again.status_code, again.json()["id"]) == (200, first.json()["id"])
    assert repeated.json()["id"] == token.json()["id"]
    assert "token" in token.json()
    assert token.json()["token"] not in repeated.text


def test_a_change_of_what_was_read_before_is_refused():
    bot = make_bot()
    api = admin_api()
    path = f"people/{bot.pk}"
    etag = api.get(path).headers["ETag"]

    changed = api.patch(path, {"description": "new"}, If_Match=etag)
    refused = api.patch(path, {"description": "newer"}, If_Match=etag)

    assert (changed.status_code, refused.status_code) == (200, 412)
    assert api.get(path).json()["description"] == "new"
    entry = AuditEntry.objects.filter(noun="user", thing="bot").first()
    assert entry.changes == {"description": ["", "new"]}
    assert (entry.by, entry.way) == ("root", "api")


def test_nobody_disables_their_own_account():
    api = admin_api()
    root = User.objects.get()

    refused = api.patch(f"people/{root.pk}", {"is_active": False})

    assert (refused.status_code, fields_of(refused)) == (422, ["is_active"])
    assert User.objects.get().is_active


def test_staff_change_accounts_as_on_the_pages():
    helper = make_helper("add_user", "change_user")
    api = Api(helper, scopes=ALL)

    made = api.post("people", BOT)
    changed = api.patch(f"people/{made.json()['id']}", {"description": "x"})

    assert (made.status_code, changed.status_code) == (201, 200)
    assert api.get("people").status_code == 200
    reader = Api(make_helper("view_user", name="reader"), scopes=ALL)
    assert reader.get("people").status_code == 200
    assert reader.post("people", {**BOT, "username": "b2"}).status_code == 403
    assert reader.get(f"people/{made.json()['id']}/tokens").status_code == 403


def test_nobody_joins_a_group_with_permissions_that_they_do_not_hold():
    helper, group = make_helper("add_user", "change_user"), make_strong_group()
    api = Api(helper, scopes=ALL)

    created = api.post("people", {**BOT, "groups": ["strong"]})
    joined = api.patch(f"people/{helper.pk}", {"groups": ["strong"]})

    assert fields_of(created) == fields_of(joined) == ["groups"]
    assert not group.user_set.exists()
    assert not User.objects.filter(username="bot").exists()


def test_groups_need_the_permission_to_change_users():
    Group.objects.create(name="crew")
    api = Api(make_helper("add_user"), scopes=ALL)

    assert api.post("people", {**BOT, "groups": ["crew"]}).status_code == 403
    assert not User.objects.filter(username="bot").exists()


def test_an_account_with_further_permissions_gives_no_token():
    helper, bot = make_helper("change_user"), make_bot()
    bot.groups.add(make_strong_group())
    api = Api(helper, scopes=ALL)

    made = api.post(f"people/{bot.pk}/tokens", {"name": "x", "scopes": ["read"]})
    changed = api.patch(f"people/{bot.pk}", {"groups": []})

    assert (made.status_code, changed.status_code) == (403, 403)
    assert not bot.api_tokens.exists()
    assert bot.groups.exists()


def test_a_change_of_an_administrator_is_refused_to_staff():
    root = make_user("root", is_superuser=True)
    api = Api(make_helper("change_user"), scopes=ALL)

    assert api.patch(f"people/{root.pk}", {"is_active": False}).status_code == 403
    assert api.get(f"people/{root.pk}/tokens").status_code == 403


def test_a_field_that_is_repeated_is_refused():
    raw = b'{"username": "bot", "kind": "service", "kind": "person"}'

    refused = admin_api().post("people", raw)

    assert (refused.status_code, fields_of(refused)) == (400, ["body"])


def test_the_list_is_filtered():
    make_bot()
    make_user("eve", is_active=False)
    api = admin_api()

    def names(query):
        return [row["username"] for row in api.get(f"people?{query}").json()["data"]]

    assert names("kind=service") == ["bot"]
    assert names("kind=person") == ["root", "eve"]
    assert names("active=false") == ["eve"]
    assert names("q=OO") == ["root"]
