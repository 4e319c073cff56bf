"""`POST /api/v1/agents/import`: agent files, and files of other products."""

from typing import Any

import pytest

from runs.models import Agent, Provider
from tests.api.make_client import Api
from tests.make import make_user

pytestmark = pytest.mark.django_db

CREW = "writer: {role: Writer, goal: Write, backstory: '', llm: openai/gpt-4o, x: 1}"
OWN = "agentfile: 1\nprompts: [{slug: hi, template: 'Hi {input}'}]\n"


@pytest.fixture
def api() -> Api:
    return Api(make_user("ann"), scopes=["build"])


def import_file(api: Api, file: str, **more: Any) -> dict[str, Any]:
    answer = api.post("agents/import", {"file": file, **more})
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_a_file_of_another_product_becomes_drafts(api):
    done = import_file(api, CREW, name="agents.yaml")

    assert done["product"] == "CrewAI"
    assert "agent writer" in done["created"]
    assert done["not_imported"] == [
        {"part": "Setting “writer: x”", "reason": "No such setting here."}
    ]
    assert done["agentfile"].startswith("agentfile: 1\n")
    assert Agent.objects.get().versions.count() == 0


def test_a_plain_prompt_has_the_name_of_its_file(api):
    prompt = "input_variables: [who]\ntemplate: 'Greet {who}.'\n"

    done = import_file(api, prompt, name="prompts/greeting.yaml")

    assert done["created"] == ["prompt template greeting"]


def test_an_agent_file_is_not_converted(api):
    done = import_file(api, OWN)

    assert done["created"] == ["prompt template hi"]
    assert (done["product"], done["agentfile"]) == (None, None)
    assert done["not_imported"] == []


@pytest.mark.parametrize("file", [CREW, OWN])
def test_a_dry_run_returns_the_same_and_stores_nothing(api, file):
    planned = import_file(api, file, dry_run=True)
    again = import_file(api, file)

    assert planned == again | {"dry_run": True}
    assert again["dry_run"] is False


def test_a_dry_run_stores_no_agent(api):
    import_file(api, CREW, dry_run=True)

    assert not Agent.objects.exists()
    assert not Provider.objects.exists()


def test_a_repeated_import_creates_nothing(api):
    import_file(api, CREW)
    again = import_file(api, CREW)

    assert again["created"] == again["updated"] == []


def test_a_file_that_cannot_be_imported_is_refused_with_the_reason(api):
    workflow = "app: {mode: workflow}\nkind: app\nversion: 0.1.5\nworkflow: {}\n"

    answer = api.post("agents/import", {"file": workflow})

    [error] = answer.json()["errors"]
    assert (answer.status_code, error["field"]) == (422, "file")
    assert error["message"].startswith("This is a Dify workflow;")


def test_the_errors_of_an_agent_file_are_named_by_their_place(api):
    answer = api.post("agents/import", {"file": "agentfile: 1\nagent: []\n"})

    [error] = answer.json()["errors"]
    assert (answer.status_code, error["field"]) == (422, "file.agent")
