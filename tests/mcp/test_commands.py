"""The operator's list of commands."""

import pytest

from tools.mcp.commands import find_server_command, parse_server_commands
from tools.mcp.errors import UnknownCommand


def test_reads_names_programs_and_arguments():
    found = parse_server_commands("files=npx -y files '/srv/a b'; git=uvx git")

    assert found["files"].argv == ("npx", "-y", "files", "/srv/a b")
    assert found["git"].argv == ("uvx", "git")


def test_words_in_front_of_the_program_are_variables():
    found = parse_server_commands("git=GIT_TOKEN='a;b' MODE=x serve TOKEN=not")["git"]

    assert found.variables == (("GIT_TOKEN", "a;b"), ("MODE", "x"))
    assert found.argv == ("serve", "TOKEN=not")


def test_hands_on_no_variable_that_nobody_gave(monkeypatch):
    monkeypatch.setenv("SECRET_KEY", "secret")
    monkeypatch.setenv("DATABASE_URL", "postgresql://secret")

    environment = parse_server_commands("git=GIT_TOKEN=a serve")["git"].environment

    assert set(environment) - {"GIT_TOKEN"} <= {
        *("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR"),
    }
    assert environment["GIT_TOKEN"] == "a"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("serve", "does not begin with a name"),
        ("Git=serve", "does not begin with a name"),
        ("../x=serve", "does not begin with a name"),
        ("git=", "names no program"),
        ("git=TOKEN=x", "names no program"),
        ("git=a; git=b", "two commands named 'git'"),
        ("git='a", "No closing quotation"),
    ],
)
def test_refuses_a_list_that_cannot_be_meant(text, why):
    with pytest.raises(ValueError, match=why):
        parse_server_commands(text)


def test_what_is_not_listed_is_a_sentence():
    with pytest.raises(UnknownCommand, match="no command 'rm -rf /' in AGENTSITE_MCP"):
        find_server_command("rm -rf /", "git=serve")
