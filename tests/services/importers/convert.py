"""Converting a file in a test, with what it became."""

import json
from typing import Any

from runs.models import Provider
from runs.services.agentfile.load import import_agentfile
from runs.services.agentfile.schema import AgentEntry
from runs.services.importers.convert import ForeignImport, convert_foreign_file
from tests.make import make_user


def convert(given: Any, *, name: str = "") -> ForeignImport:
    """Convert a text, or an object as JSON, for a user who has a provider.

    The result must be possible to import.
    """
    ann = make_user("ann")
    Provider.objects.get_or_create(
        slug="local",
        defaults={
            "owner": ann,
            "name": "Local",
            "base_url": "http://127.0.0.1:18080/v1",
            "default_model": "qwen3",
        },
    )
    text = given if isinstance(given, str) else json.dumps(given)
    found = convert_foreign_file(text, ann, name=name)
    assert found is not None
    import_agentfile(found.text, ann, inert=True, dry_run=True)
    return found


def get_agent(found: ForeignImport) -> AgentEntry:
    (agent,) = found.file.agents
    return agent


def get_messages(found: ForeignImport, slug: str = "") -> list[tuple[str, str]]:
    """Return roles and templates of a prompt, by default the only one."""
    prompts = [one for one in found.file.prompts if one.slug == slug or not slug]
    (prompt,) = prompts
    return [(one.role, one.template) for one in prompt.messages or ()]


def get_skipped(found: ForeignImport) -> dict[str, str]:
    """Return what is not imported, with the reasons."""
    return dict(found.skipped)
