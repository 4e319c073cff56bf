"""Making a tool what it was at an earlier revision."""

from django.contrib.auth.models import Group, User

from tools.definition.save import DEFINITION_FIELDS, save_tool
from tools.models import Credential, McpServer, Tool, ToolRevision

NOT_RESTORED = frozenset({"slug", "enabled", "visibility"})
"""Fields that are not taken back: restoring neither renames nor publishes."""


def restore_revision(revision: ToolRevision, *, by: User) -> Tool:
    """Take back the definition of `revision`, as a new revision.

    A credential or server that `by` may no longer use is left out.
    """
    tool = revision.tool
    for name in DEFINITION_FIELDS:
        if name in revision.body and name not in NOT_RESTORED:
            setattr(tool, name, revision.body[name])
    tool.credential = (
        Credential.objects.usable_by(by)
        .filter(pk=revision.body.get("credential") or 0)
        .first()
    )
    tool.mcp_server = (
        McpServer.objects.usable_by(by)
        .filter(pk=revision.body.get("mcp_server") or 0)
        .first()
    )
    if (approvers := revision.body.get("approvers")) is None:
        tool.approvers = None
    elif group := Group.objects.filter(pk=approvers).first():
        tool.approvers = group  # one that is gone leaves the present one
    return save_tool(tool, by=by, note=f"Restored revision {revision.number}")
