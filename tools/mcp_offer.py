"""What a server says of one of its tools, and the hash by which it is pinned."""

import hashlib
import json
import re
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from pydantic import BaseModel, ConfigDict, Field

from tools.schema.check import find_schema_flaws
from tools.text.storable import is_storable

MAX_DESCRIPTION = 20_000
MAX_SCHEMA = 100_000
"""Characters of the schema as JSON."""

MAX_NAME = 128
OFFERED_NAME = re.compile(rf"[!-~]{{1,{MAX_NAME}}}")

FLAW_TEXTS = {
    "name": gettext_lazy(
        "its name has spaces or letters beyond ASCII, or is longer than "
        "%(name)d characters"
    ),
    "task": gettext_lazy("it runs only as a task, which is not supported"),
    "description": gettext_lazy(
        "its description is longer than %(description)d characters"
    ),
    "text": gettext_lazy("it has a character or number that cannot be stored"),
    "nested": gettext_lazy("its schema is nested too deeply"),
    "size": gettext_lazy("its schema is larger than %(schema)d characters"),
    "number": gettext_lazy(
        "its schema has a number or a character that cannot be stored"
    ),
    "schema": gettext_lazy("its schema is not valid"),
}
"""Why an offer cannot become a tool; `schema` only if nothing more is known."""


def describe_flaw(code: str, schema: Any) -> str:
    """Return why an offer cannot become a tool; an unknown code as it is."""
    if code == "schema" and (found := find_schema_flaws(schema)):
        return found[0]
    limits = {"name": MAX_NAME, "description": MAX_DESCRIPTION, "schema": MAX_SCHEMA}
    return str(FLAW_TEXTS[code]) % limits if code in FLAW_TEXTS else code


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
        name = re.sub(r"[^A-Za-z0-9_-]+", "_", self.name).strip("_")
        return name[:64] or "tool"

    @property
    def flaw_code(self) -> str:
        """Why it cannot become a tool, as a key of `FLAW_TEXTS`; empty if it can."""
        if not OFFERED_NAME.fullmatch(self.name):
            return "name"
        if isinstance(self.execution, dict) and (
            self.execution.get("taskSupport") == "required"
        ):
            return "task"
        if len(self.description) > MAX_DESCRIPTION:
            return "description"
        if not is_storable([self.description, self.annotations]):
            return "text"
        try:
            size = len(json.dumps(self.args_schema))
        except RecursionError:
            return "nested"
        if size > MAX_SCHEMA:
            return "size"
        if not is_storable(self.args_schema):
            return "number"
        return "schema" if find_schema_flaws(self.args_schema) else ""

    @property
    def flaw(self) -> str:
        """Why it cannot become a tool, for the reader; empty if it can."""
        code = self.flaw_code
        return describe_flaw(code, self.args_schema) if code else ""

    @property
    def refused_definition(self) -> dict[str, Any]:
        """What is stored of an offer with a flaw: its code, not a translated text."""
        kept: dict[str, Any] = {"name": self.name, "flaw": self.flaw_code}
        if self.flaw_code == "schema":
            kept["args_schema"] = self.args_schema
        return kept

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
