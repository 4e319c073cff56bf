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
from tools.net.http_exchange import Request
from tools.net.reserved_headers import is_reserved_header
from tools.net.web_address import find_address_flaw, has_userinfo
from tools.text.json_pointer import parse_json_pointer

Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]

PLACEHOLDER = re.compile(r"\{([A-Za-z_][\w.-]*)\}")
HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
METHODS_WITHOUT_BODY = ("GET", "HEAD", "DELETE")
FORM_TYPE = "application/x-www-form-urlencoded"
MAX_BYTES = 20 << 20


class ArgumentLeavesPath(ToolFailed):
    """An argument would lead to another path."""

    def __init__(self, name: str, value: str) -> None:
        super().__init__(
            f"The argument {name!r} is {value[:80]!r}, which is no part of an address."
        )


class InvalidHeaderValue(ToolFailed):
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
        if flaw := find_address_flaw(url):
            raise ValueError(flaw)
        if "{" in urlsplit(url).netloc:
            raise ValueError("the host cannot come from an argument")
        if has_userinfo(url):
            raise ValueError("a password belongs into a credential")
        return url

    @field_validator("headers")
    @classmethod
    def check_headers(cls, headers: dict[str, str]) -> dict[str, str]:
        """Refuse names that are none, and those of the connection."""
        for name, value in headers.items():
            if not HEADER_NAME.fullmatch(name) or is_reserved_header(name):
                raise ValueError(f"the header {name!r} cannot be set")
            if not is_header_value(value):
                raise ValueError(f"the value of the header {name!r} cannot be sent")
        return headers

    @field_validator("pick")
    @classmethod
    def check_pointer(cls, pick: str) -> str:
        """Refuse what is no JSON pointer."""
        try:
            parse_json_pointer(pick)
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


def build_http_request(config: HttpConfig, tool_input: Any) -> Request:
    """Return the request for one call; refuse arguments that do not fit."""
    arguments = tool_input if isinstance(tool_input, dict) else {"input": tool_input}
    rest = {k: v for k, v in arguments.items() if k not in config.placeholders}
    headers = {
        name: fill_header_template(name, value, arguments)
        for name, value in config.headers.items()
        if not is_absent_placeholder(value, arguments)
    }
    query = fill_name_value_pairs(config.query, arguments, joined=config.joined)
    content, content_type = build_request_body(config, arguments, rest)
    if config.method in METHODS_WITHOUT_BODY and content is None:
        query += fill_name_value_pairs({name: f"{{{name}}}" for name in rest}, rest)
    if content_type:
        headers.setdefault("content-type", content_type)
    return Request(
        url=build_request_url(config.url, arguments, query),
        method=config.method,
        headers=headers,
        content=content,
    )


def build_request_url(
    url: str, arguments: dict[str, Any], query: list[tuple[str, str]]
) -> str:
    """Return the address; each argument stays inside the part it stands in."""
    parts = urlsplit(url)

    def part(match: re.Match[str]) -> str:
        name = match[1]
        value = arguments.get(name)
        if value is None or value == "":
            raise ArgumentMissing(name)
        return quote(join_list_value(value), safe="")

    path = PLACEHOLDER.sub(part, parts.path)
    for before, after in zip(parts.path.split("/"), path.split("/"), strict=True):
        if before != after and unquote(after) in (".", ".."):
            raise ArgumentLeavesPath(PLACEHOLDER.findall(before)[0], unquote(after))
    own = [
        pair
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
        for pair in fill_name_value_pairs({name: value}, arguments)
    ]
    return urlunsplit((parts.scheme, parts.netloc, path, urlencode(own + query), ""))


def fill_name_value_pairs(
    templates: dict[str, str],
    arguments: dict[str, Any],
    *,
    joined: Collection[str] = (),
) -> list[tuple[str, str]]:
    """Return names and values; what has no argument is left out, a list is repeated."""
    pairs = []
    for name, template in templates.items():
        value = fill_text_template(template, arguments)
        if name in joined and isinstance(value, list):
            value = join_list_value(value) if value else None
        values = value if isinstance(value, list) else [value]
        pairs += [(name, format_scalar(one)) for one in values if one is not None]
    return pairs


def build_request_body(
    config: HttpConfig, arguments: dict[str, Any], rest: dict[str, Any]
) -> tuple[bytes | None, str]:
    """Return the body and its type."""
    if config.form is not None:
        pairs = fill_name_value_pairs(config.form, arguments)
        return (urlencode(pairs).encode(), FORM_TYPE) if pairs else (None, "")
    if config.body is not None:
        if is_absent_placeholder(config.body, arguments):
            return None, ""
        return dump_json_bytes(
            fill_json_template(config.body, arguments)
        ), "application/json"
    if config.method in METHODS_WITHOUT_BODY:
        return None, ""
    return dump_json_bytes(rest), "application/json"


def dump_json_bytes(value: Any) -> bytes:
    """Return compact JSON; lone surrogates, which UTF-8 cannot carry, are replaced."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def fill_json_template(shape: Any, arguments: dict[str, Any]) -> Any:
    """Return a JSON value with all placeholders replaced; absent ones are left out."""
    if isinstance(shape, str):
        return fill_text_template(shape, arguments)
    if isinstance(shape, list):
        return [fill_json_template(one, arguments) for one in shape]
    if isinstance(shape, dict):
        return {
            key: fill_json_template(one, arguments)
            for key, one in shape.items()
            if not is_absent_placeholder(one, arguments)
        }
    return shape


def is_absent_placeholder(shape: Any, arguments: dict[str, Any]) -> bool:
    """Whether a value is one placeholder without an argument."""
    match = PLACEHOLDER.fullmatch(shape) if isinstance(shape, str) else None
    return match is not None and match[1] not in arguments


def fill_text_template(template: str, arguments: dict[str, Any]) -> Any:
    """Return the value of a lone placeholder, or a text with all of them replaced."""
    if match := PLACEHOLDER.fullmatch(template):
        return arguments.get(match[1])
    return PLACEHOLDER.sub(lambda m: format_scalar(arguments.get(m[1], "")), template)


def fill_header_template(name: str, template: str, arguments: dict[str, Any]) -> str:
    """Return the value of a header; raise `CannotSend`."""
    value = PLACEHOLDER.sub(lambda m: format_scalar(arguments.get(m[1], "")), template)
    if not is_header_value(value):
        raise InvalidHeaderValue(name)
    return value


def is_header_value(value: str) -> bool:
    """Whether a header can hold `value`."""
    return value.isascii() and (value.isprintable() or value == "")


def join_list_value(value: Any) -> str:
    """Return a value for a place that holds one: the members of a list with commas."""
    if isinstance(value, list):
        return ",".join(format_scalar(one) for one in value)
    return format_scalar(value)


def format_scalar(value: Any) -> str:
    """Return a value as addresses and forms write it."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
