"""The variables, and what is said of wrong ones."""

import re

import pytest
from pydantic import ValidationError

from agentsite.env import (
    Env,
    UnusableFile,
    format_env_errors,
    parse_header_list,
    read_variable_files,
)
from agentsite.layout import ROOT


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("PORT", "abc", id="port-word"),
        pytest.param("PORT", "70000", id="port-too-big"),
        pytest.param("AGENTSITE_LEASE_SECONDS", "-1", id="negative-lease"),
        pytest.param("REDIS_URL", "http://x", id="redis-scheme"),
        pytest.param("AGENTSITE_URL", "example.org", id="url-without-scheme"),
        pytest.param("AGENTSITE_TOOL_MODULES", "a b", id="module-with-space"),
        pytest.param("CSRF_TRUSTED_ORIGINS", "example.org", id="origin-scheme"),
        pytest.param("AGENTSITE_LOG_LEVEL", "LOUD", id="log-level"),
        pytest.param("DEBUG", "maybe", id="debug-word"),
        pytest.param("AGENTSITE_LOG_FORMAT", "xml", id="log-format"),
        pytest.param("AGENTSITE_METRICS_TOKEN", "short", id="short-token"),
        pytest.param("AGENTSITE_OTLP_ENDPOINT", "collector:4318", id="otlp-scheme"),
        pytest.param("AGENTSITE_OTLP_ENDPOINT", "http://u:p@c/", id="otlp-user"),
        pytest.param("AGENTSITE_OTLP_HEADERS", "a: b", id="otlp-headers"),
        pytest.param("AGENTSITE_OTLP_HEADERS", "a=b%0D%0Ac", id="otlp-header-value"),
        pytest.param("REDIS_URL", "redis://host:port/0", id="redis-port"),
        pytest.param("AGENTSITE_ENCRYPTION_KEYS", "secret", id="no-key"),
        pytest.param("ALLOWED_HOSTS", "http://example.org", id="host-is-address"),
    ],
)
def test_a_wrong_value_is_a_sentence_naming_the_variable(monkeypatch, name, value):
    monkeypatch.setenv(name, value)

    with pytest.raises(ValidationError) as caught:
        Env()

    (sentence,) = format_env_errors(caught.value)
    assert sentence.startswith(f"The variable {name} ")


def test_every_variable_has_a_line_of_help():
    assert all(field.description for field in Env.model_fields.values())


def test_a_list_is_split_at_commas(monkeypatch):
    monkeypatch.setenv("AGENTSITE_TOOL_MODULES", "a.b, c,")

    assert Env().agentsite_tool_modules == ("a.b", "c")


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("http://c:4318", "http://c:4318/v1/traces"),
        ("https://c/otlp/", "https://c/otlp/v1/traces"),
        ("http://c/v1/traces", "http://c/v1/traces"),
    ],
)
def test_the_address_of_a_collector_is_completed(monkeypatch, given, url):
    monkeypatch.setenv("AGENTSITE_OTLP_ENDPOINT", given)

    assert Env().agentsite_otlp_endpoint == url


def test_header_values_are_decoded_and_never_shown(monkeypatch):
    assert parse_header_list("a=b%20c, d=e=f") == {"a": "b c", "d": "e=f"}
    monkeypatch.setenv("AGENTSITE_OTLP_HEADERS", "authorization secret")

    with pytest.raises(ValidationError) as caught:
        Env()

    assert "secret" not in str(format_env_errors(caught.value))


def rows() -> list[str]:
    """Return the README's table as the model has it."""
    return [
        f"| `{name.upper()}` | {shown(field.default)} | {field.description} |"
        for name, field in Env.model_fields.items()
    ]


def shown(default: object) -> str:
    return "" if default in ("", (), None) else f"`{default}`"


def test_the_readme_lists_every_variable_and_no_other():
    readme = (ROOT / "README.md").read_text().splitlines()

    assert [line for line in readme if re.match(r"\| `[A-Z]", line)] == rows()


@pytest.mark.parametrize(
    ("variables", "is_local"),
    [
        pytest.param({}, True, id="default"),
        pytest.param({"AGENTSITE_HOST": "::1"}, True, id="loopback"),
        pytest.param({"AGENTSITE_HOST": "0.0.0.0"}, False, id="all"),
        pytest.param({"AGENTSITE_URL": "http://localhost:9"}, True, id="own-url"),
        pytest.param({"AGENTSITE_URL": "http://[::1]:9"}, True, id="own-v6"),
        pytest.param({"AGENTSITE_URL": "https://a.example"}, False, id="proxy"),
        pytest.param({"ALLOWED_HOSTS": "a.example"}, False, id="proxy-without-url"),
        pytest.param({"ALLOWED_HOSTS": "*"}, False, id="any-host"),
        pytest.param({"ALLOWED_HOSTS": "a.localhost,[::1]"}, True, id="own-hosts"),
    ],
)
def test_a_public_address_or_host_makes_a_site_public(monkeypatch, variables, is_local):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert Env().is_local is is_local


def test_a_file_gives_the_value_of_a_variable(tmp_path):
    path = tmp_path / "key"
    path.write_text("from a file\n")

    found = read_variable_files({"SECRET_KEY_FILE": str(path)})

    assert Env(**found).secret_key == "from a file"


def test_other_variables_that_end_in_file_are_left_alone():
    assert read_variable_files({"SSL_CERT_FILE": "/nowhere", "PORT_FILE": ""}) == {}


@pytest.mark.parametrize(
    ("variables", "why"),
    [
        pytest.param(
            {"SECRET_KEY_FILE": "/nowhere"}, "/nowhere: No such file", id="missing"
        ),
        pytest.param({"SECRET_KEY_FILE": "/"}, "/: Is a directory", id="folder"),
        pytest.param(
            {"SECRET_KEY_FILE": "/x", "SECRET_KEY": "k"}, "is set too", id="both"
        ),
    ],
)
def test_an_unusable_file_is_a_sentence_naming_the_variable(variables, why):
    with pytest.raises(UnusableFile, match=f"SECRET_KEY_FILE cannot be used: .*{why}"):
        read_variable_files(variables)


@pytest.mark.parametrize(
    ("url", "address"),
    [
        pytest.param("redis://h:1/0", "redis://:p%2F%40@h:1/0", id="without"),
        pytest.param("redis://:own@h/0", "redis://:own@h/0", id="with-its-own"),
    ],
)
def test_a_password_is_added_to_the_address_of_redis(url, address):
    assert Env(redis_url=url, redis_password="p/@").redis_address == address
