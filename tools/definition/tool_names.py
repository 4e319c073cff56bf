"""Distinguishing tools of one name in an agent, by their MCP servers."""

from collections import Counter
from collections.abc import Sequence

from tools.models import Tool
from tools.spec import ToolSpec

MAX_NAME = 64


def prefix_colliding_names(specs: Sequence[ToolSpec]) -> tuple[ToolSpec, ...]:
    """Return `specs`; if several have one name, those of MCP servers get a prefix.

    It is the slug of the server. Other tools, and what still collides, stay as they
    are.
    """
    counts = Counter(spec.name for spec in specs)
    colliding = [spec for spec in specs if counts[spec.name] > 1 and spec.kind == "mcp"]
    if not colliding:
        return tuple(specs)
    rows = Tool.objects.filter(pk__in=[spec.tool_id for spec in colliding])
    slugs = dict(rows.values_list("pk", "mcp_server__slug"))
    return tuple(
        spec.model_copy(update={"name": prefix_name(spec.name, slug)})
        if spec in colliding and (slug := slugs.get(spec.tool_id or 0))
        else spec
        for spec in specs
    )


def prefix_name(name: str, slug: str) -> str:
    """Return a name of at most 64 characters; the server's part is cut first."""
    room = max(MAX_NAME - len(name) - 1, 8)
    return f"{slug.replace('-', '_')[:room]}_{name}"[:MAX_NAME]
