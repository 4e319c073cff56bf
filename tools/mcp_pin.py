"""What was accepted of a server's tool, and what the server says of it since."""

from typing import Any

from django.db import models

from tools.mcp_offer import Offer, describe_flaw


class McpPin(models.Model):
    """Beside each tool of an MCP server: the accepted and the newer definition."""

    tool = models.OneToOneField(
        "tools.Tool", on_delete=models.CASCADE, related_name="pin"
    )
    accepted = models.JSONField()
    """The `Offer` a person accepted."""
    offered = models.JSONField(null=True, blank=True)
    """The `Offer` the server makes now, if it is another; null for none."""
    noticed_at = models.DateTimeField(null=True, blank=True)
    """Since when that waits for a person; null also if one dismissed it."""

    def __str__(self) -> str:
        return f"pin of {self.tool_id}"

    @property
    def pending_definition(self) -> dict[str, Any]:
        return self.offered or {}

    @property
    def flaw(self) -> str:
        """Why the newer definition cannot be used, for the reader.

        Older rows have a sentence in place of the code.
        """
        pending = self.pending_definition
        code = str(pending.get("flaw", ""))
        return describe_flaw(code, pending.get("args_schema", {}))

    @property
    def digest(self) -> str:
        """What identifies the newer definition; empty if it has a flaw."""
        return (
            ""
            if "flaw" in self.pending_definition
            else Offer.model_validate(self.pending_definition).digest
        )
