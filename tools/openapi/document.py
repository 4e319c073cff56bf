"""Reading an OpenAPI document; nothing outside of it is ever looked at."""

import json
from dataclasses import dataclass
from typing import Any

from tools.errors import ToolFailed
from tools.openapi.plain_yaml import NotPlainYaml, read_yaml
from tools.storable import storable

MAX_BYTES = 16 << 20
MAX_YAML_BYTES = 8 << 20
"""Reading YAML takes ten times as long as reading JSON."""

MAX_OPERATIONS = 2_000

MAX_TITLE = 200
"""Characters of its title that are shown and kept."""

MAX_HOPS = 30
"""References from one to the next."""

METHODS = ("get", "head", "post", "put", "patch", "delete")


class DocumentRefused(ToolFailed):
    """The text is not a document that tools can be made of."""


class TooLarge(DocumentRefused):
    """There is too much of it."""

    def __init__(self) -> None:
        super().__init__(
            f"The document is larger than {MAX_BYTES >> 20} MB. Cut it to the paths "
            "you need."
        )


class TooMuchYaml(DocumentRefused):
    """It is long, and no JSON."""

    def __init__(self) -> None:
        super().__init__(
            f"The document is not JSON, and as YAML larger than {MAX_YAML_BYTES >> 20} "
            "MB. Give it as JSON, or cut it to the paths you need."
        )


class TooManyOperations(DocumentRefused):
    """Nobody would find theirs."""

    def __init__(self) -> None:
        super().__init__(
            f"The document has more than {MAX_OPERATIONS:,} operations. Cut it to the "
            "paths you need."
        )


class Unreadable(DocumentRefused):
    """It is neither JSON nor YAML."""

    def __init__(self, why: str) -> None:
        super().__init__(f"The document is neither JSON nor YAML: {why}.")


class NotOpenApi(DocumentRefused):
    """It is something else."""

    def __init__(self, why: str) -> None:
        super().__init__(f"This is no OpenAPI document of version 3.0 or 3.1: {why}.")


class InAnotherFile(Exception):
    """A reference leads out of the document."""

    def __init__(self, reference: str) -> None:
        super().__init__(
            f"part of it is in another file, {reference[:80]!r}; put all into one "
            "document first"
        )


@dataclass(frozen=True)
class Document:
    """A parsed document."""

    body: dict[str, Any]

    @property
    def title(self) -> str:
        """Its own title."""
        info = self.body.get("info")
        title = str(info.get("title", "")) if isinstance(info, dict) else ""
        return storable(title[:MAX_TITLE])

    def at(self, reference: str) -> Any:
        """Return what a local reference points to, None where there is nothing.

        Raise `InAnotherFile` where it is none.
        """
        if not reference.startswith("#"):
            raise InAnotherFile(reference)
        if not reference.startswith("#/"):
            return None
        value: Any = self.body
        for part in reference[2:].split("/"):
            key = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(value, dict) or key not in value:
                return None
            value = value[key]
        return value

    def resolved(self, value: Any) -> dict[str, Any]:
        """Follow references until an object comes; an empty one where none does."""
        for _ in range(MAX_HOPS):
            if not isinstance(value, dict):
                return {}
            reference = value.get("$ref")
            if not isinstance(reference, str):
                return value
            value = self.at(reference)
        return {}


def read_document(text: str) -> Document:
    """Return the document; raise `DocumentRefused` with a sentence."""
    if len(text.encode("utf-8", "replace")) > MAX_BYTES:
        raise TooLarge
    body = parsed(text)
    if not isinstance(body, dict):
        raise NotOpenApi("it is no object")
    version = str(body.get("openapi", ""))
    if "swagger" in body:
        raise NotOpenApi(f"it is Swagger {str(body['swagger'])[:40]}; convert it first")
    if not version.startswith(("3.0", "3.1")):
        raise NotOpenApi(
            f"its `openapi` is {version[:40]!r}" if version else "no `openapi`"
        )
    if not isinstance(body.get("paths", {}), dict):
        raise NotOpenApi("its `paths` are no object")
    items = [item for item in body.get("paths", {}).values() if isinstance(item, dict)]
    if sum(method in item for item in items for method in METHODS) > MAX_OPERATIONS:
        raise TooManyOperations
    return Document(body)


def parsed(text: str) -> Any:
    """Return the value of JSON or YAML text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    if len(text.encode("utf-8", "replace")) > MAX_YAML_BYTES:
        raise TooMuchYaml
    try:
        return read_yaml(text)
    except NotPlainYaml as error:
        raise Unreadable(str(error)[:200]) from None
    except ValueError:  # half a character, which its parser does not take
        raise Unreadable("it has characters that are none") from None
