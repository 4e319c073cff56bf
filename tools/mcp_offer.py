"""What a server says of one of its tools, and the hash by which it is pinned."""

import hashlib
import json
import re
from typing import Any

from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict, Field

from tools.schema.check import find_schema_flaws
from tools.text.storable import is_storable

MAX_DESCRIPTION = 20_000
MAX_SCHEMA = 100_000
"""Characters of the schema as JSON."""

OFFERED_NAME = re.compile(r"[!-~]{1,128}")


class ToolHints(BaseModel):
    """What a server suggests about its tool; nothing follows from it."""

    model_config = ConfigDict(
        frozen=True, extra="ignore", strict=True, populate_by_name=True
    )

    read_only: bool | None = Field(default=None, alias="readOnlyHint")
    destructive: bool | None = Field(default=None, alias="destructiveHint")
    idempotent: bool | None = Field(default=None, alias="idempotentHint")


class Offer(BaseModel):
    """One tool of a server, as it is now."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    name: str
    description: str = ""
    args_schema: dict[str, Any] = Field(alias="inputSchema")
    annotations: dict[str, Any] = {}
    execution: Any = Field(default=None, exclude=True)
    """How it may be called; no part of what is accepted."""

    @property
    def digest(self) -> str:
        """SHA-256 of all a person accepts: name, description, schema, annotations."""
        body = json.dumps(self.model_dump(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()

    def differs_only_in_description(self, other: "Offer") -> bool:
        """Whether the two are the same tool, apart from what it says of itself."""
        same = self.model_copy(update={"description": other.description})
        return same.digest == other.digest

    @property
    def tool_name(self) -> str:
        """A name that models can call it by."""
        name = re.sub(r"[^A-Za-z0-9_-]+", "_", self.name).strip("_")
        return name[:64] or "tool"

    @property
    def flaw(self) -> str:
        """Why no tool can be made of it; empty for most."""
        if not OFFERED_NAME.fullmatch(self.name):
            return "its name has spaces or letters beyond ASCII, or is too long"
        if isinstance(self.execution, dict) and (
            self.execution.get("taskSupport") == "required"
        ):
            return "it runs only as a task, which is not supported"
        if len(self.description) > MAX_DESCRIPTION:
            return f"its description is longer than {MAX_DESCRIPTION} characters"
        if not is_storable([self.description, self.annotations]):
            return "it says something that cannot be stored"
        try:
            size = len(json.dumps(self.args_schema))
        except RecursionError:
            return "its schema is nested too deeply"
        if size > MAX_SCHEMA:
            return f"its schema is larger than {MAX_SCHEMA} characters"
        return " ".join(find_schema_flaws(self.args_schema)[:1])

    @property
    def hint(self) -> str:
        """What the server says of its effect, in words."""
        try:
            hints = ToolHints.model_validate(self.annotations)
        except ValueError:
            return ""
        if hints.read_only:
            return _("Read-only")
        if hints.idempotent:
            return _("Idempotent write (safe to repeat)")
        return _("Destructive") if hints.destructive else ""
