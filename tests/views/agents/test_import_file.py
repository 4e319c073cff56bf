"""The page that imports an agent file."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from runs.models import Agent, Provider
from tests.make import make_agent, make_user
from tools.models import Tool

pytestmark = pytest.mark.django_db

URL = "/agents/import/"
FILE = """
agentfile: 1
providers:
  - {slug: local, kind: openai, base_url: "http://127.0.0.1:18080/v1"}
tools:
  - slug: sums
    kind: function
    config: {function: "tools.builtin.calculator:calculator"}
agents:
  - {slug: adder, name: Adder, provider: local, model: m, tools: [sums]}
"""


def uploaded(content: bytes) -> dict[str, SimpleUploadedFile]:
    return {"file": SimpleUploadedFile("agents.yaml", content)}


def test_the_list_of_agents_leads_here(client, ann):
    assert f'href="{URL}"' in client.get("/agents/").content.decode()
    assert 'enctype="multipart/form-data"' in client.get(URL).content.decode()


def test_a_pasted_text_becomes_drafts_and_tools_that_are_off(client, ann):
    answer = client.post(URL, {"text": FILE})

    agent = Agent.objects.get(slug="adder")
    assert answer.headers["Location"] == f"/agents/{agent.pk}/"
    assert (agent.owner, agent.versions.count()) == (ann, 0)
    assert (Tool.objects.get().enabled, Tool.objects.get().approval) == (
        False,
        "side_effects",
    )
    page = client.get(answer.headers["Location"]).content.decode()
    assert "Created as drafts: provider local, tool sums, agent adder." in page


def test_a_chosen_file_counts_before_the_text(client, ann):
    client.post(
        URL, {"text": "agentfile: 2", **uploaded(b"\xef\xbb\xbf" + FILE.encode())}
    )

    assert Agent.objects.get().slug == "adder"


def test_a_mistake_is_a_sentence_with_its_place_and_nothing_is_stored(client, ann):
    text = FILE.replace("provider: local", "provider: other")

    answer = client.post(URL, {"text": text})

    page = answer.content.decode()
    assert answer.status_code == 200
    assert "agents[0].provider: There is no provider &#x27;other&#x27;" in page
    assert "Nothing was imported." in page
    assert "model: m, tools: [sums]" in page
    assert (Provider.objects.count(), Tool.objects.count()) == (0, 0)


def test_the_text_of_a_refused_file_can_be_mended_on_the_page(client, ann):
    answer = client.post(URL, uploaded(b"agentfile: 1\nagent: []\n"))

    assert "agentfile: 1\nagent: []" in answer.content.decode()
    assert "agent: " in str(answer.context["form"].errors["text"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param({"text": " \n"}, "Select a file or paste its text.", id="nothing"),
        pytest.param(
            {"text": "a: [1"},
            "line 1, column 4, the list that begins here",
            id="no YAML",
        ),
        pytest.param({"text": "a\0b"}, "Null characters are not allowed.", id="NUL"),
        pytest.param(uploaded(b""), "Select a file or paste its text.", id="empty"),
        pytest.param(uploaded(b"\xff\xfe\x00"), "not UTF-8 text", id="no text"),
        pytest.param(
            uploaded(b"x" * 20_000_001), "at most 5,000,000 characters", id="too long"
        ),
        pytest.param({"text": "x" * 500_001}, "longer than 500000", id="too much"),
    ],
)
def test_says_what_cannot_be_read(client, ann, given, message):
    answer = client.post(URL, given)

    assert answer.status_code == 200
    assert message in answer.content.decode()
    assert Agent.objects.count() == 0


def test_a_hostile_name_in_the_file_is_shown_as_text(client, ann):
    answer = client.post(URL, {"text": "agentfile: 1\n<script>: 1\n"})

    assert "<script>: 1" not in answer.content.decode()
    assert "&lt;script&gt;" in answer.content.decode()


def test_changes_nothing_that_is_there(client, ann):
    client.post(URL, {"text": FILE})
    changed = FILE.replace("name: Adder", "name: Other")

    again = client.post(URL, {"text": FILE}, follow=True).content.decode()
    refused = client.post(URL, {"text": changed}).content.decode()

    assert "everything in the file already exists" in again
    assert "Use another slug in the file" in refused
    assert Agent.objects.get().name == "Adder"


def test_an_agent_of_somebody_else_is_not_touched(client, ann):
    make_agent(make_user("bob"), slug="adder", name="Theirs")

    page = client.post(URL, {"text": FILE}).content.decode()

    assert "belongs to another user" in page
    assert Agent.objects.get().name == "Theirs"


CREW = "writer: {role: Writer, goal: Write, backstory: '', llm: openai/gpt-4o, x: 1}"


def test_a_file_of_another_product_is_previewed_and_nothing_is_stored(client, ann):
    answer = client.post(URL, {"text": CREW})

    page = answer.content.decode()
    assert "This is a file of CrewAI." in page
    assert "agent writer" in page
    assert "Not imported: 1 part" in page
    assert "Setting “writer: x”" in page
    assert "You are Writer." in answer.context["form"]["text"].value()
    assert (Agent.objects.count(), Provider.objects.count()) == (0, 0)


def test_the_previewed_agent_file_becomes_drafts(client, ann):
    shown = client.post(URL, {"text": CREW}).context["form"]["text"].value()

    answer = client.post(URL, {"text": shown})

    agent = Agent.objects.get(slug="writer")
    assert answer.headers["Location"] == f"/agents/{agent.pk}/"
    assert (agent.versions.count(), agent.prompt.slug) == (0, "writer-instructions")


def test_an_uploaded_file_of_another_product_is_previewed(client, ann):
    answer = client.post(URL, uploaded(b"\xef\xbb\xbf" + CREW.encode()))

    assert "This is a file of CrewAI." in answer.content.decode()


def test_a_file_that_cannot_be_imported_is_recognized_by_name(client, ann):
    text = "kind: app\napp: {mode: workflow}\nworkflow: {}"

    page = client.post(URL, {"text": text}).content.decode()

    assert "This is a Dify workflow; only agent apps" in page
    assert "Nothing was imported." in page


def test_hostile_names_in_a_preview_are_shown_as_text(client, ann):
    text = CREW.replace("x: 1", '"<script>": 1').replace("writer:", '"<b>":')

    page = client.post(URL, {"text": text}).content.decode()

    assert "<script>: " not in page
    assert "&lt;b&gt;: &lt;script&gt;" in page
