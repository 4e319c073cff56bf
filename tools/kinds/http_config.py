"""What an HTTP tool is made of, and the request it makes of its arguments.

Placeholders such as `{order_id}` are replaced by arguments, escaped for the place they
stand in. Arguments without a placeholder go into the query of GET, HEAD and DELETE, and
into a JSON body otherwise. Nothing an argument holds can change host or path.
"""

import json
import re
from collections.abc import Collection
from typing import Any, Literal
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from tools.errors import ToolFailed
from tools.exchange import Asked
from tools.json_pointer import parts_of
from tools.web_address import flaw_of_address, names_a_person

Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]

PLACEHOLDER = re.compile(r"\{([A-Za-z_][\w.-]*)\}")
HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
NOT_OURS = {
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "upgrade",
    "te",
}
"""Headers that belong to the connection."""

WITHOUT_BODY = ("GET", "HEAD", "DELETE")
FORM_TYPE = "application/x-www-form-urlencoded"
MAX_BYTES = 20 << 20


class LeavesThePath(ToolFailed):
    """An argument would lead to another path."""

    def __init__(self, name: str, value: str) -> None:
        super().__init__(
            f"The argument {name!r} is {value[:80]!r}, which is no part of an address."
        )


class CannotSend(ToolFailed):
    """An argument does not fit into a header."""

    def __init__(self, header: str) -> None:
        super().__init__(
            f"The value for the header {header!r} has line breaks or characters that "
            "a header cannot hold."
        )


class ArgumentMissing(ToolFailed):
    """The path needs an argument that was left out."""

    def __init__(self, name: str) -> None:
        super().__init__(f"The argument {name!r} is needed for the address.")


class HttpConfig(BaseModel):
    """The definition, as it is stored and frozen."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    method: Method = "GET"
    url: str
    headers: dict[str, str] = {}
    query: dict[str, str] = {}
    joined: tuple[str, ...] = ()
    """Parameters of the query whose lists are sent as `a,b`; others are repeated."""
    body: Any = Field(default=None, alias="json")
    """JSON with placeholders; a text that is one placeholder becomes the value."""
    form: dict[str, str] | None = None
    """Fields of a form, with placeholders, instead of JSON."""
    pick: str = ""
    """JSON pointer to the part of the answer that is the result."""
    max_bytes: int = Field(default=1 << 20, ge=1, le=MAX_BYTES)
    hosts: tuple[str, ...] = ()
    credential: int | None = None

    @field_validator("url")
    @classmethod
    def check_url(cls, url: str) -> str:
        """Refuse what names no server, or lets an argument name it."""
        url = url.strip()
        if flaw := flaw_of_address(url):
            raise ValueError(flaw)
        if "{" in urlsplit(url).netloc:
            raise ValueError("the host cannot come from an argument")
        if names_a_person(url):
            raise ValueError("a password belongs into a credential")
        return url

    @field_validator("headers")
    @classmethod
    def check_headers(cls, headers: dict[str, str]) -> dict[str, str]:
        """Refuse names that are none, and those of the connection."""
        for name, value in headers.items():
            if not HEADER_NAME.fullmatch(name) or name.lower() in NOT_OURS:
                raise ValueError(f"the header {name!r} cannot be set")
            if not is_header_value(value):
                raise ValueError(f"the value of the header {name!r} cannot be sent")
        return headers

    @field_validator("pick")
    @classmethod
    def check_pointer(cls, pick: str) -> str:
        """Refuse what is no JSON pointer."""
        try:
            parts_of(pick)
        except ToolFailed as error:
            raise ValueError(str(error).rstrip(".")) from None
        return pick

    @model_validator(mode="after")
    def check_body(self) -> "HttpConfig":
        """Refuse two bodies, and one where none is sent."""
        if self.body is not None and self.form is not None:
            raise ValueError("the body is JSON or a form, not both")
        has_body = self.body is not None or self.form is not None
        if has_body and self.method in ("GET", "HEAD"):
            raise ValueError(f"{self.method} sends no body")
        return self

    @property
    def placeholders(self) -> set[str]:
        """Names of all placeholders."""
        shape = [self.url, self.headers, self.query, self.body, self.form]
        return set(PLACEHOLDER.findall(json.dumps(shape, ensure_ascii=False)))


def request_of(config: HttpConfig, tool_input: Any) -> Asked:
    """Return the request for one call; refuse arguments that do not fit."""
    arguments = tool_input if isinstance(tool_input, dict) else {"input": tool_input}
    rest = {k: v for k, v in arguments.items() if k not in config.placeholders}
    headers = {
        name: header(name, value, arguments)
        for name, value in config.headers.items()
        if not is_absent(value, arguments)
    }
    query = pairs_of(config.query, arguments, joined=config.joined)
    content, content_type = body_of(config, arguments, rest)
    if config.method in WITHOUT_BODY and content is None:
        query += pairs_of({name: f"{{{name}}}" for name in rest}, rest)
    if content_type:
        headers.setdefault("content-type", content_type)
    return Asked(
        url=address_of(config.url, arguments, query),
        method=config.method,
        headers=headers,
        content=content,
    )


def address_of(
    url: str, arguments: dict[str, Any], query: list[tuple[str, str]]
) -> str:
    """Return the address; each argument stays inside the part it stands in."""
    parts = urlsplit(url)

    def part(match: re.Match[str]) -> str:
        name = match[1]
        value = arguments.get(name)
        if value is None or value == "":
            raise ArgumentMissing(name)
        return quote(one_text(value), safe="")

    path = PLACEHOLDER.sub(part, parts.path)
    for before, after in zip(parts.path.split("/"), path.split("/"), strict=True):
        if before != after and unquote(after) in (".", ".."):
            raise LeavesThePath(PLACEHOLDER.findall(before)[0], unquote(after))
    own = [
        pair
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
        for pair in pairs_of({name: value}, arguments)
    ]
    return urlunsplit((parts.scheme, parts.netloc, path, urlencode(own + query), ""))


def pairs_of(
    templates: dict[str, str],
    arguments: dict[str, Any],
    *,
    joined: Collection[str] = (),
) -> list[tuple[str, str]]:
    """Return names and values; what has no argument is left out, a list is repeated."""
    pairs = []
    for name, template in templates.items():
        value = filled(template, arguments)
        if name in joined and isinstance(value, list):
            value = one_text(value) if value else None
        values = value if isinstance(value, list) else [value]
        pairs += [(name, text_of(one)) for one in values if one is not None]
    return pairs


def body_of(
    config: HttpConfig, arguments: dict[str, Any], rest: dict[str, Any]
) -> tuple[bytes | None, str]:
    """Return the body and its type."""
    if config.form is not None:
        pairs = pairs_of(config.form, arguments)
        return (urlencode(pairs).encode(), FORM_TYPE) if pairs else (None, "")
    if config.body is not None:
        if is_absent(config.body, arguments):
            return None, ""
        return json_bytes(filled_deep(config.body, arguments)), "application/json"
    if config.method in WITHOUT_BODY:
        return None, ""
    return json_bytes(rest), "application/json"


def json_bytes(value: Any) -> bytes:
    """Return compact JSON; lone surrogates, which UTF-8 cannot carry, are replaced."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def filled_deep(shape: Any, arguments: dict[str, Any]) -> Any:
    """Return a JSON value with all placeholders replaced; absent ones are left out."""
    if isinstance(shape, str):
        return filled(shape, arguments)
    if isinstance(shape, list):
        return [filled_deep(one, arguments) for one in shape]
    if isinstance(shape, dict):
        return {
            key: filled_deep(one, arguments)
            for key, one in shape.items()
            if not is_absent(one, arguments)
        }
    return shape


def is_absent(shape: Any, arguments: dict[str, Any]) -> bool:
    """Whether a value is one placeholder without an argument."""
    match = PLACEHOLDER.fullmatch(shape) if isinstance(shape, str) else None
    return match is not None and match[1] not in arguments


def filled(template: str, arguments: dict[str, Any]) -> Any:
    """Return the value of a lone placeholder, or a text with all of them replaced."""
    if match := PLACEHOLDER.fullmatch(template):
        return arguments.get(match[1])
    return PLACEHOLDER.sub(lambda m: text_of(arguments.get(m[1], "")), template)


def header(name: str, template: str, arguments: dict[str, Any]) -> str:
    """Return the value of a header; raise `CannotSend`."""
    value = PLACEHOLDER.sub(lambda m: text_of(arguments.get(m[1], "")), template)
    if not is_header_value(value):
        raise CannotSend(name)
    return value


def is_header_value(value: str) -> bool:
    """Whether a header can hold `value`."""
    return value.isascii() and (value.isprintable() or value == "")


def one_text(value: Any) -> str:
    """Return a value for a place that holds one: the members of a list with commas."""
    if isinstance(value, list):
        return ",".join(text_of(one) for one in value)
    return text_of(value)


def text_of(value: Any) -> str:
    """Return a value as addresses and forms write it."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
