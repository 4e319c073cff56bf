"""Files that people try to import as agents, and what they are instead."""

from collections.abc import Callable
from typing import NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from runs.services.importers.document import ForeignDocument


class OtherFormat(NamedTuple):
    recognizes: Callable[[ForeignDocument], bool]
    message: Promise


def is_crewai_tasks(document: ForeignDocument) -> bool:
    tasks = list(document.fields.values())
    return bool(tasks) and all(
        isinstance(task, dict) and {"description", "expected_output"} <= set(task)
        for task in tasks
    )


OTHER_FORMATS = (
    OtherFormat(
        lambda document: {"paths", "info"} <= set(document.fields),
        _("This is an OpenAPI document. Import it under Tools."),
    ),
    OtherFormat(
        lambda document: "mcpServers" in document.fields,
        _("This is a list of MCP servers. Add each one under Tools."),
    ),
    OtherFormat(
        is_crewai_tasks,
        _("This is a CrewAI tasks file; only agents (agents.yaml) can be imported."),
    ),
    OtherFormat(
        lambda document: {"schema", "func"} <= set(document.fields),
        _(
            "This is a Flowise tool; only flows with agents can be imported. Its code "
            "is not Python."
        ),
    ),
    OtherFormat(
        lambda document: (
            "dependencies" in document.fields and "graphs" in document.fields
        ),
        _(
            "This is a LangGraph configuration; the agents are in its code, which "
            "cannot be imported."
        ),
    ),
    OtherFormat(
        lambda document: document.fields.get("object") == "assistant",
        _("This is an OpenAI assistant. Create an agent, and copy its instructions."),
    ),
    OtherFormat(
        lambda document: document.is_code,
        _(
            "This code has no agent of the OpenAI Agents SDK; only code that Agent "
            "Builder exports can be imported."
        ),
    ),
)
