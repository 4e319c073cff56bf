"""Reading an OpenAPI document; nothing outside of it is ever looked at."""

import json
from dataclasses import dataclass
from typing import Any

import yaml

from tools.errors import ToolFailed
from tools.storable import storable

MAX_BYTES = 2 << 20
MAX_YAML_BYTES = 512 << 10
"""Reading YAML takes thirty times as long as reading JSON."""

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
            f"The document is not JSON, and as YAML larger than {MAX_YAML_BYTES >> 10} "
            "KB. Give it as JSON, or cut it to the paths you need."
        )


class Unreadable(DocumentRefused):
    """It is neither JSON nor YAML."""

    def __init__(self, why: str) -> None:
        super().__init__(f"The document is neither JSON nor YAML: {why}.")


class NotOpenApi(DocumentRefused):
    """It is something else."""

    def __init__(self, why: str) -> None:
        super().__init__(f"This is no OpenAPI document of version 3.0 or 3.1: {why}.")


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
        """Return what a local reference points to, None where there is nothing."""
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


class PlainLoader(yaml.SafeLoader):
    """YAML as JSON: dates stay texts, and nothing is shared by `*name`."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Refuse aliases: a few lines of them can stand for gigabytes."""
        if self.check_event(yaml.AliasEvent):
            raise Unreadable("it uses YAML aliases (*name); write the parts out")
        return super().compose_node(parent, index)


PlainLoader.yaml_implicit_resolvers = {
    first: [(tag, regexp) for tag, regexp in found if not tag.endswith(":timestamp")]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


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
        return as_json(yaml.load(text, PlainLoader))  # noqa: S506  # a SafeLoader
    except yaml.YAMLError as error:
        raise Unreadable(" ".join(str(error).split())[:200]) from None
    except (ValueError, RecursionError, TypeError) as error:
        raise Unreadable(str(error)[:200] or "it is nested too deeply") from None


def as_json(value: Any) -> Any:
    """Return YAML's value with texts as keys, and nothing JSON does not know."""
    if isinstance(value, dict):
        return {key_of(key): as_json(one) for key, one in value.items()}
    if isinstance(value, list):
        return [as_json(one) for one in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def key_of(key: Any) -> str:
    """Return a key as JSON writes it: responses are often keyed by numbers."""
    return key if isinstance(key, str) else json.dumps(key, default=str)
