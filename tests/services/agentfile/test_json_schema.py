"""The JSON Schema of agent files, and the reference that shows it."""

import json
import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from runs.services.agentfile.json_schema import build_agentfile_schema
from runs.services.agentfile.text import parse_agentfile

DOCS = Path(__file__).parents[3] / "docs"
BLOCK = re.compile(r"```yaml\n(agentfile: 1\n.*?)```", re.DOTALL)
EXAMPLES = [
    pytest.param(text, id=f"{page.stem}-{number}")
    for page in sorted(DOCS.glob("*.md"))
    for number, text in enumerate(BLOCK.findall(page.read_text(encoding="utf-8")))
]


def test_the_published_schema_is_current():
    published = json.loads((DOCS / "agentfile.schema.json").read_text())

    assert published == build_agentfile_schema(), (
        "Run: manage.py agentfile_schema > docs/agentfile.schema.json"
    )


@pytest.mark.parametrize("text", EXAMPLES)
def test_examples_in_the_docs_are_valid(text):
    jsonschema.validate(yaml.safe_load(text), build_agentfile_schema())

    parse_agentfile(text)


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param("providers: [{slug: a, kind: fax}]", id="unknown-kind"),
        pytest.param("prompts: [{slug: a b, template: x}]", id="slug-with-space"),
        pytest.param("tools: [{slug: a, effect: none}]", id="unknown-effect"),
        pytest.param("agents: [{slug: a, provider: p}]", id="without-model"),
        pytest.param("people: []", id="unknown-list"),
    ],
)
def test_the_schema_refuses_what_is_wrong(entry):
    found = yaml.safe_load(f"agentfile: 1\n{entry}")

    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(found, build_agentfile_schema())


def test_every_field_is_in_the_reference():
    page = (DOCS / "agent-files.md").read_text(encoding="utf-8")
    definitions = build_agentfile_schema()["$defs"]

    missing = [
        f"{name}.{field}"
        for name, definition in definitions.items()
        for field in definition.get("properties", {})
        if f"`{field}`" not in page
    ]

    assert missing == []
