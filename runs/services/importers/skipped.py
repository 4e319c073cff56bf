"""Sentences on parts of a file that are not imported."""

from collections.abc import Mapping

from django.utils.translation import gettext as _

from runs.services.importers.conversion import SkippedPart

MAX_NAME = 120
"""Characters of a name that a sentence quotes."""


def skip_tool(name: object, kind: object = "", *, reason: str = "") -> SkippedPart:
    """Return a tool that has no counterpart, unless `reason` says otherwise."""
    return SkippedPart(
        _quote(_("Tool “%(name)s”"), name, kind),
        reason or _("No such tool here. Add an HTTP, OpenAPI or MCP tool instead."),
    )


def skip_node(name: object, kind: object = "", *, reason: str = "") -> SkippedPart:
    """Return a node of a graph that is not part of an agent."""
    return SkippedPart(
        _quote(_("Node “%(name)s”"), name, kind),
        reason or _("Only agents, with their models and tools, can be imported."),
    )


def skip_setting(name: object, *, reason: str = "") -> SkippedPart:
    return SkippedPart(
        _quote(_("Setting “%(name)s”"), name), reason or _("No such setting here.")
    )


def skip_variables(owner: str, expressions: Mapping[str, str]) -> list[SkippedPart]:
    """Return what a prompt of `owner` had in place of each variable."""
    return [
        skip_setting(f"{owner}: {{{said}}}", reason=explain_expression(name))
        for name, said in expressions.items()
    ]


def skip_knowledge(name: object) -> SkippedPart:
    return SkippedPart(
        _quote(_("Knowledge base “%(name)s”"), name),
        _("There are no knowledge bases here. Add a tool that searches instead."),
    )


def skip_agent(name: object, kind: object = "", *, reason: str) -> SkippedPart:
    return SkippedPart(_quote(_("Agent “%(name)s”"), name, kind), reason)


def skip_key(name: object) -> SkippedPart:
    return SkippedPart(
        _quote(_("Setting “%(name)s”"), name),
        _("Keys are not imported. Enter the key on the page of the provider."),
    )


def explain_code() -> str:
    return _("The code is not Python. Rewrite the tool in Python.")


def explain_disabled() -> str:
    return _("Disabled in the file.")


def explain_mcp(address: str) -> str:
    """Name the server, unless the address is an expression."""
    if not address or "{{" in address:
        return _("Add the MCP server under Tools, and select its tools.")
    return _("Add the MCP server %(address)s under Tools, and select its tools.") % {
        "address": address[:MAX_NAME]
    }


def explain_openapi() -> str:
    return _("Import the OpenAPI document under Tools.")


def explain_separate_agents() -> str:
    return _(
        "The agents are imported one by one. To combine them, let one agent call the "
        "others."
    )


def explain_expression(name: str) -> str:
    return _("Became the variable {%(name)s}, which each run has to be given.") % {
        "name": name
    }


def _quote(words: str, name: object, kind: object = "") -> str:
    said = words % {"name": str(name)[:MAX_NAME]}
    return f"{said} ({str(kind)[:MAX_NAME]})" if kind else said
