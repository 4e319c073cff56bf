"""Parse OpenAPI documents; references that leave the document are not followed."""

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from django.utils.formats import number_format
from django.utils.translation import gettext as _

from tools.errors import ToolFailed
from tools.openapi.plain_yaml import NotPlainYaml, read_yaml
from tools.openapi.swagger2_document import upgrade_swagger2
from tools.text.json_pointer import is_index
from tools.text.storable import replace_unstorable

MAX_BYTES = 16 << 20
MAX_YAML_BYTES = 8 << 20
"""Reading YAML takes ten times as long as reading JSON."""

MAX_OPERATIONS = 2_000

MAX_TITLE = 200
"""Characters of its title that are shown and kept."""

MAX_REFERENCE_HOPS = 30
"""References from one to the next."""

METHODS = ("get", "head", "post", "put", "patch", "delete")


class DocumentRefused(ToolFailed):
    """The text is not a document that tools can be created from."""


class DocumentTooLarge(DocumentRefused):
    def __init__(self) -> None:
        super().__init__(
            _(
                "The document is larger than %(size)d MB. Reduce it to the paths you "
                "need."
            )
            % {"size": MAX_BYTES >> 20}
        )


class YamlTooLarge(DocumentRefused):
    """YAML is slow to parse, so its limit is lower than that of JSON."""

    def __init__(self) -> None:
        super().__init__(
            _(
                "The document is not JSON, and as YAML larger than %(size)d MB. "
                "Convert it to JSON, or reduce it to the paths you need."
            )
            % {"size": MAX_YAML_BYTES >> 20}
        )


class TooManyOperations(DocumentRefused):
    def __init__(self) -> None:
        super().__init__(
            _(
                "The document has more than %(count)s operations. Reduce it to the "
                "paths you need."
            )
            % {"count": number_format(MAX_OPERATIONS, force_grouping=True)}
        )


class DocumentUnreadable(DocumentRefused):
    def __init__(self, why: str) -> None:
        super().__init__(
            _("The document is neither JSON nor YAML: %(reason)s.") % {"reason": why}
        )


class NotOpenApi(DocumentRefused):
    def __init__(self, why: str) -> None:
        super().__init__(
            _("Not an OpenAPI 3.0, 3.1 or Swagger 2.0 document: %(reason)s.")
            % {"reason": why}
        )


class UnresolvedReference(Exception):
    """A reference has no target in the document."""


class MissingReference(UnresolvedReference):
    """A reference names a place that the document does not have."""

    def __init__(self, reference: str) -> None:
        self.reference = reference
        super().__init__(
            _("it refers to “%(reference)s”, which is not in the document")
            % {"reference": reference[:80]}
        )


class ExternalReference(UnresolvedReference):
    """A reference leads out of the document."""

    def __init__(self, reference: str) -> None:
        super().__init__(
            _(
                "part of it is in another file (%(file)s); bundle the files into one "
                "document first"
            )
            % {"file": reference[:80]}
        )


@dataclass(frozen=True)
class OpenApiDocument:
    body: dict[str, Any]

    @property
    def is_swagger2(self) -> bool:
        return "swagger" in self.body

    @property
    def title(self) -> str:
        info = self.body.get("info")
        title = str(info.get("title", "")) if isinstance(info, dict) else ""
        return replace_unstorable(title[:MAX_TITLE])

    def find_reference(self, reference: str) -> Any:
        """Return the target of a local reference; raise `UnresolvedReference`."""
        if not reference.startswith("#"):
            raise ExternalReference(reference)
        value: Any = self.body
        for part in reference[1:].split("/")[1:]:
            try:
                value = find_part(value, part)
            except LookupError:
                raise MissingReference(reference) from None
        if value is self.body:
            raise MissingReference(reference)
        return value

    def resolve(self, value: Any) -> dict[str, Any]:
        """Follow references to an object; return an empty one for anything else.

        Raise `UnresolvedReference`.
        """
        for _hop in range(MAX_REFERENCE_HOPS):
            if not isinstance(value, dict):
                return {}
            reference = value.get("$ref")
            if not isinstance(reference, str):
                return value
            value = self.find_reference(reference)
        return {}


def find_part(value: Any, part: str) -> Any:
    """Return what a part of a reference names; raise `LookupError`.

    Some documents have the percent sign of a name as it is.
    """
    for text in (unquote(part), part):
        key = text.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and key in value:
            return value[key]
        if isinstance(value, list) and is_index(key):
            return value[int(key)]
    raise KeyError(part)


def parse_openapi_document(text: str) -> OpenApiDocument:
    """Return the document; raise `DocumentRefused` with a sentence."""
    if len(text.encode("utf-8", "replace")) > MAX_BYTES:
        raise DocumentTooLarge
    body = parse_openapi_text(text)
    if not isinstance(body, dict):
        raise NotOpenApi(_("it is not an object"))
    version = str(body.get("openapi", ""))
    if "swagger" in body:
        older = str(body["swagger"])
        if older.partition(".")[0] != "2":
            raise NotOpenApi(_("it is Swagger %(version)s") % {"version": older[:40]})
        body = upgrade_swagger2(body)
    elif not version.startswith(("3.0", "3.1")):
        raise NotOpenApi(
            _("its `openapi` is “%(version)s”") % {"version": version[:40]}
            if version
            else _("it has no `openapi`")
        )
    if not isinstance(body.get("paths", {}), dict):
        raise NotOpenApi(_("its `paths` is not an object"))
    items = [item for item in body.get("paths", {}).values() if isinstance(item, dict)]
    if sum(method in item for item in items for method in METHODS) > MAX_OPERATIONS:
        raise TooManyOperations
    return OpenApiDocument(body)


def parse_openapi_text(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    if len(text.encode("utf-8", "replace")) > MAX_YAML_BYTES:
        raise YamlTooLarge
    try:
        return read_yaml(text)
    except NotPlainYaml as error:
        raise DocumentUnreadable(str(error)[:200]) from None
    except ValueError:  # half a character, which its parser does not take
        raise DocumentUnreadable(_("it has invalid characters")) from None
