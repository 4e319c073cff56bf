"""Where a credential may be sent."""

from importlib import import_module
from types import SimpleNamespace

import pytest
from django.apps import apps
from django.db import connection

from tests.tools.rows import make_tool, make_user
from tools.credentials import binding_matches
from tools.models import Credential, McpServer


@pytest.mark.parametrize(
    ("binding", "url"),
    [
        ("api.example.com", "https://api.example.com/a?b"),
        ("API.example.com", "https://api.EXAMPLE.com.:443/"),
        ("*.example.com", "https://eu.api.example.com"),
        ("api.example.com:8443", "https://api.example.com:8443/"),
        ("https://api.example.com", "https://api.example.com/"),
        ("http://localhost:8080", "http://localhost:8080/mcp"),
        ("http://localhost", "http://localhost:80/"),
        ("http://[::1]:8080", "http://[::1]:8080/"),
        ("::1", "https://[::1]/"),
    ],
)
def test_a_secret_goes_where_it_is_bound_to(binding, url):
    assert binding_matches(binding, url)


@pytest.mark.parametrize(
    ("binding", "url"),
    [
        ("api.example.com", "http://api.example.com/"),
        ("api.example.com", "https://api.example.com:8443/"),
        ("api.example.com", "https://example.com/"),
        ("*.example.com", "https://example.com/"),
        ("*.example.com", "https://badexample.com/"),
        ("http://localhost:8080", "http://localhost/"),
        ("http://localhost:8080", "https://localhost:8080/"),
        ("api.example.com", "https://api.example.com@evil.example/"),
        ("api.example.com", "https://api.example.com:port/"),
        ("api.example.com:99999", "https://api.example.com/"),
        ("", "https:///"),
    ],
)
def test_a_secret_goes_nowhere_else(binding, url):
    assert not binding_matches(binding, url)


@pytest.mark.django_db
def test_credentials_keep_working_where_they_were_used():
    ann = make_user()
    shop = Credential.objects.create(name="a", owner=ann, hosts=["a.example", "::1"])
    unused = Credential.objects.create(name="b", owner=ann, hosts=["b.example"])
    for url in ("https://a.example/x", "http://a.example/x", "http://[::1]:81/", "//"):
        make_tool(kind="http", config={"url": url}, credential=shop)
    make_tool(kind="http", config={"url": "http://c.example/x"}, credential=unused)
    McpServer.objects.create(
        name="s", owner=ann, url="https://a.example:8443/mcp", credential=shop
    )
    migration = import_module("tools.migrations.0009_credential_origins")

    migration.name_origins_in_use(apps, SimpleNamespace(connection=connection))

    shop.refresh_from_db()
    unused.refresh_from_db()
    assert shop.hosts[:2] == ["a.example", "::1"]
    assert set(shop.hosts[2:]) == {
        *("http://a.example", "http://[::1]:81", "https://a.example:8443")
    }
    assert unused.hosts == ["b.example"]
