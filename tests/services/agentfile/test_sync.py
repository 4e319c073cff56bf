"""Agent files of a folder or a git branch, as one import."""

import subprocess
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from runs.models import Agent, Provider
from runs.services.agentfile.git_source import GitFailed, run_git
from runs.services.agentfile.sync import NoAgentFiles, sync_agentfiles
from runs.services.agentfile.text import AgentFileRefused
from tests.make import make_agent, make_user

pytestmark = pytest.mark.django_db

PROVIDER = """
agentfile: 1
providers:
  - {slug: local, kind: openai, base_url: "http://127.0.0.1:18080/v1"}
"""
AGENT = """
agentfile: 1
agents:
  - {slug: adder, name: Adder, provider: local, model: m}
"""


def write_files(folder: Path, **more: str) -> Path:
    """Write two files, of which the first refers to the second."""
    (folder / "teams").mkdir(parents=True)
    (folder / "agents.yaml").write_text(AGENT)
    (folder / "teams/providers.yml").write_text(PROVIDER)
    (folder / "compose.yml").write_text("services: {}")
    for name, text in more.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder


def run(source: object, **options: object) -> str:
    out = StringIO()
    make_user("ann")
    call_command("sync_agentfiles", str(source), owner="ann", stdout=out, **options)
    return out.getvalue()


def test_files_of_a_folder_refer_to_one_another(tmp_path):
    found = sync_agentfiles(write_files(tmp_path), make_user("ann"))

    assert found.files == ("agents.yaml", "teams/providers.yml")
    assert found.done.created == ["provider local", "agent adder"]
    assert Agent.objects.get().versions.count() == 1


def test_the_plan_changes_nothing(tmp_path):
    out = run(write_files(tmp_path))

    assert "would create agent adder\nwould publish agent adder" in out
    assert "Add --apply" in out
    assert Agent.objects.count() == 0


def test_applying_twice_changes_nothing(tmp_path):
    write_files(tmp_path)
    assert "created agent adder\npublished agent adder" in run(tmp_path, apply=True)

    out = run(tmp_path, apply=True)

    assert out.endswith("No changes.\n")
    assert Agent.objects.get().versions.count() == 1


def test_drift_is_named_with_its_fields(tmp_path):
    run(write_files(tmp_path), apply=True)
    Agent.objects.update(model="other", description="Edited here")
    make_agent(make_user("ann"), slug="mine")

    out = run(tmp_path)

    assert "would update agent adder (description, model)" in out
    assert "only here: agent mine" in out
    assert Agent.objects.get(slug="adder").model == "other"


def test_a_check_fails_only_if_something_differs(tmp_path):
    write_files(tmp_path)
    with pytest.raises(CommandError, match="differs from the agent files"):
        run(tmp_path, check=True)
    run(tmp_path, apply=True)

    assert "No changes." in run(tmp_path, check=True)


def test_an_error_names_its_file_and_nothing_is_stored(tmp_path):
    write_files(tmp_path, second=AGENT.replace("adder", "b").replace("local", "gone"))

    with pytest.raises(AgentFileRefused) as refused:
        sync_agentfiles(tmp_path, make_user("ann"))

    (error,) = refused.value.errors
    assert error.field == "second.yaml: agents[0].provider"
    assert Provider.objects.count() == 0


def test_all_unreadable_files_are_named(tmp_path):
    write_files(tmp_path, bad="agentfile: 2", worse="agentfile: 1\nagent: []")
    (tmp_path / "latin.json").write_bytes(b'{"agentfile": 1, "a": "\xff"}')

    with pytest.raises(AgentFileRefused) as refused:
        sync_agentfiles(tmp_path, make_user("ann"))

    assert [error.field.partition(":")[0] for error in refused.value.errors] == [
        "bad.yaml",
        "latin.json",
        "worse.yaml",
    ]


def test_a_definition_in_two_files_is_refused(tmp_path):
    write_files(tmp_path, again=AGENT)

    with pytest.raises(AgentFileRefused, match="defined twice"):
        sync_agentfiles(tmp_path, make_user("ann"))


def test_links_out_of_the_folder_and_hidden_files_are_left_out(tmp_path):
    (tmp_path / "outside.yaml").write_text(PROVIDER)
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "link.yaml").symlink_to(tmp_path / "outside.yaml")
    (folder / ".hidden.yaml").write_text(PROVIDER)

    with pytest.raises(NoAgentFiles, match="has no agent files"):
        sync_agentfiles(folder, make_user("ann"))


def git(folder: Path, *words: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    subprocess.run(["git", *identity, *words], cwd=folder, check=True)


def make_repository(folder: Path) -> str:
    """Return the URL of a repository whose branch `main` has agent files."""
    write_files(folder / "agents")
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "Add agents")
    return f"file://{folder}"


def test_a_branch_of_a_repository_is_read(tmp_path):
    url = make_repository(tmp_path)

    out = run(url, branch="main", path="agents", apply=True)

    assert "Agent files: agents.yaml, teams/providers.yml" in out
    assert Agent.objects.get().slug == "adder"


@pytest.mark.parametrize(
    ("branch", "path", "message"),
    [
        ("gone", ".", "git cannot read the repository: .*gone"),
        ("main", "gone", "There is no folder 'gone'"),
        ("main", "../..", "There is no folder"),
    ],
)
def test_what_cannot_be_read_of_a_repository_is_said(tmp_path, branch, path, message):
    url = make_repository(tmp_path)

    with pytest.raises(CommandError, match=message):
        run(url, branch=branch, path=path)


@pytest.mark.parametrize(
    "url", ["ext::sh -c true", "--upload-pack=x", "https+x://127.0.0.1/"]
)
def test_an_address_that_would_run_a_program_is_only_a_folder(url):
    with pytest.raises(CommandError, match="neither a folder|unrecognized|required"):
        run(url)


def test_a_repository_that_is_missing_is_named(tmp_path):
    url = f"file://{tmp_path}/gone.git"

    with pytest.raises(CommandError, match=r"gone\.git' does not appear to be a git"):
        run(url)


def test_a_source_that_is_missing_is_named(tmp_path):
    with pytest.raises(CommandError, match=r"gone' is neither a folder nor the URL"):
        run(tmp_path / "gone")


def test_an_error_of_git_shows_no_password():
    said = "echo fatal: no http://ann:secret@git.example.com/a.git >&2; exit 128"

    with pytest.raises(GitFailed) as refused:
        run_git(["sh", "-c", said])

    assert str(refused.value) == (
        "git cannot read the repository: fatal: no http://git.example.com/a.git"
    )


def test_git_does_not_ask_for_a_password():
    with pytest.raises(CommandError, match="git cannot read the repository"):
        run("http://127.0.0.1:9/agents.git")
