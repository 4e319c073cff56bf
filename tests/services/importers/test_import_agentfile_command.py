"""`manage.py import_agentfile` with files of other products."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from runs.management.commands.import_agentfile import MAX_BYTES
from runs.models import Agent
from tests.make import make_user

pytestmark = pytest.mark.django_db

CREW = "writer: {role: Writer, goal: Write, backstory: '', llm: openai/gpt-4o, x: 1}"


def run(path, **options) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    make_user("ann")
    call_command(
        "import_agentfile", str(path), owner="ann", stdout=out, stderr=err, **options
    )
    return out.getvalue(), err.getvalue()


def test_agents_of_other_products_become_drafts(tmp_path):
    path = tmp_path / "agents.yaml"
    path.write_text(CREW)

    out, err = run(path)

    assert out.startswith("Converted a file of CrewAI.\n")
    assert "created agent writer" in out
    assert "published" not in out
    assert err == "Not imported: Setting “writer: x”: No such setting here.\n"
    assert Agent.objects.get().versions.count() == 0


def test_a_repeated_import_changes_nothing(tmp_path):
    path = tmp_path / "agents.yaml"
    path.write_text(CREW)
    run(path)

    assert "No changes." in run(path)[0]


def test_a_dry_run_stores_nothing(tmp_path):
    path = tmp_path / "agents.yaml"
    path.write_text(CREW)

    out, _ = run(path, dry_run=True)

    assert "would create agent writer" in out
    assert Agent.objects.count() == 0


def test_a_refused_file_is_named(tmp_path):
    path = tmp_path / "flow.yml"
    path.write_text("app: {mode: workflow}\nkind: app\n")

    with pytest.raises(
        CommandError, match=r"Nothing was imported.\nThis is a Dify work"
    ):
        run(path)


def test_a_file_of_100_mb_is_not_read(tmp_path):
    path = tmp_path / "large.json"
    with path.open("wb") as file:
        file.truncate(100_000_000)

    with pytest.raises(CommandError, match=f"longer than {MAX_BYTES // 1_000_000} MB"):
        run(path)
