"""What the settings make of the database, the broker and static files."""

import subprocess

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import connection
from django.test import AsyncClient, Client

from agentsite.database import InvalidDatabaseUrl, parse_database_url
from tests.faults.site import run_python


@pytest.mark.django_db(transaction=True)
def test_the_database_keeps_what_it_is_given():
    User.objects.create_user("ann")

    assert User.objects.count() == 1


@pytest.mark.django_db
def test_sqlite_syncs_fully_and_postgresql_has_timeouts():
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            assert cursor.execute("PRAGMA journal_mode").fetchone() == ("wal",)
            assert cursor.execute("PRAGMA synchronous").fetchone() == (2,)
            assert cursor.execute("PRAGMA foreign_keys").fetchone() == (1,)
        else:
            cursor.execute("SHOW statement_timeout")
            assert cursor.fetchone() == ("30s",)


def test_a_postgresql_url_becomes_a_pool(tmp_path):
    url = "postgresql://ann:p%40ss@db.example:5433/site?sslmode=require"

    entry = parse_database_url(url, data=tmp_path, pool=7)

    assert (entry["USER"], entry["PASSWORD"]) == ("ann", "p@ss")
    assert (entry["HOST"], entry["PORT"], entry["NAME"]) == (
        "db.example",
        "5433",
        "site",
    )
    assert entry["OPTIONS"]["sslmode"] == "require"
    assert entry["OPTIONS"]["pool"]["max_size"] == 7


@pytest.mark.parametrize(
    ("user", "password"),
    [
        pytest.param("ann", "from@file", id="without"),
        pytest.param("ann:own", "own", id="with-its-own"),
    ],
)
def test_a_password_is_added_to_the_database_url(tmp_path, user, password):
    url = f"postgresql://{user}@db.example/site"

    entry = parse_database_url(url, data=tmp_path, pool=1, password="from@file")

    assert entry["PASSWORD"] == password


def test_nothing_stays_in_a_session_that_pgbouncer_shares(tmp_path):
    url = "postgresql://db.example/site?pgbouncer=true"

    entry = parse_database_url(url, data=tmp_path, pool=7)

    assert entry["DISABLE_SERVER_SIDE_CURSORS"]
    assert not {"options", "pgbouncer"} & set(entry["OPTIONS"])


@pytest.mark.parametrize(
    ("query", "prepares"),
    [
        pytest.param("", True, id="usual"),
        pytest.param("?prepare_threshold=none", False, id="behind-a-pooler"),
        pytest.param("?pgbouncer=true", False, id="behind-pgbouncer"),
    ],
)
def test_only_a_pooler_that_forgets_forbids_prepared_statements(
    tmp_path, query, prepares
):
    url = f"postgresql://db.example/site{query}"

    options = parse_database_url(url, data=tmp_path, pool=7)["OPTIONS"]

    assert (options["prepare_threshold"] is not None) == prepares


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("mysql://host/name", id="scheme"),
        pytest.param("postgresql://host", id="no-name"),
        pytest.param("postgresql://host:many/name", id="port"),
        pytest.param("nonsense", id="nonsense"),
    ],
)
def test_a_wrong_database_url_is_refused_by_name(tmp_path, url):
    with pytest.raises(InvalidDatabaseUrl, match=r"^The variable DATABASE_URL "):
        parse_database_url(url, data=tmp_path, pool=1)


def test_static_files_carry_type_length_and_policy():
    answer = Client().get("/static/admin/css/base.css")

    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/css")
    assert int(answer.headers["Content-Length"]) == len(answer.content)
    assert "script-src 'self'" in answer.headers["Content-Security-Policy"]


def test_static_files_are_served_under_asgi_without_a_warning():
    answer = async_to_sync(AsyncClient().get)("/static/admin/css/base.css")

    assert answer.status_code == 200


@pytest.mark.parametrize("content", ["", "no key\n"], ids=["empty", "another-text"])
def test_a_damaged_key_file_is_named(tmp_path, content):
    (tmp_path / "encryption_keys").write_text(content)

    with pytest.raises(subprocess.CalledProcessError) as ended:
        run_python(tmp_path, "import django; django.setup()")

    assert ended.value.stderr.startswith(f"The file {tmp_path}/encryption_keys is dam")


@pytest.mark.parametrize(
    ("url", "private_hosts"),
    [("", "provider=127.0.0.1,::1"), ("https://agents.example.org", "")],
)
def test_a_public_site_lets_nobody_reach_its_own_machine(tmp_path, url, private_hosts):
    code = (
        f"import os; os.environ['AGENTSITE_URL'] = {url!r};"
        "from agentsite import settings; print(settings.PRIVATE_HOSTS)"
    )

    assert run_python(tmp_path, code).stdout.strip() == private_hosts


@pytest.mark.parametrize(
    ("url", "prefix"), [("", ""), ("https://agents.example.org", "__Host-")]
)
def test_cookies_of_an_encrypted_site_belong_to_its_host_alone(tmp_path, url, prefix):
    code = f"""
import os; os.environ |= {{"AGENTSITE_URL": {url!r}}}
import django; django.setup()
from django.conf import settings
from django.test import Client
page = Client().get("/sign-in/", secure={bool(url)}, headers={{"host": "localhost"}})
print(settings.SESSION_COOKIE_NAME)
print(page.cookies[settings.CSRF_COOKIE_NAME].OutputString())
"""
    session, token = run_python(tmp_path, code).stdout.splitlines()

    assert session == f"{prefix}agentsite_8000"
    assert token.startswith(f"{prefix}csrftoken=")
    assert "HttpOnly" in token
    assert "Path=/" in token
    assert "Domain" not in token
    assert ("Secure" in token) is bool(url)
