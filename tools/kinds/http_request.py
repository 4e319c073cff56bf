"""The request that an HTTP tool sends for the arguments of one call.

Arguments are escaped for the place they stand in. Those without a placeholder go into
the query of GET, HEAD and DELETE, and into a JSON body otherwise. Nothing an argument
holds can change host or path.
"""

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from tools.errors import ToolFailed
from tools.kinds.http_config import (
    FORM_TYPE,
    METHODS_WITHOUT_BODY,
    HttpConfig,
    is_header_value,
)
from tools.kinds.multipart import build_multipart_body
from tools.kinds.parameter_styles import write_parameter
from tools.kinds.placeholders import (
    PLACEHOLDER,
    fill_json_template,
    fill_text_template,
    is_absent_placeholder,
    join_list_value,
)
from tools.net.http_exchange import Request


class ArgumentLeavesPath(ToolFailed):
    """An argument such as `..` would change the path."""

    def __init__(self, name: str, value: str) -> None:
        super().__init__(
            f"The argument {name!r} is {value[:80]!r}, which cannot be part of an "
            "address."
        )


class InvalidHeaderValue(ToolFailed):
    """An argument has characters that a header cannot carry."""

    def __init__(self, header: str) -> None:
        super().__init__(
            f"The value for the header {header!r} has line breaks or characters that "
            "a header cannot hold."
        )


class ArgumentMissing(ToolFailed):
    """A required argument of the path is missing."""

    def __init__(self, name: str) -> None:
        super().__init__(f"The argument {name!r} is needed for the address.")


def build_http_request(config: HttpConfig, tool_input: Any) -> Request:
    """Return the request for one call; raise `ToolFailed` for unusable arguments."""
    arguments = tool_input if isinstance(tool_input, dict) else {"input": tool_input}
    rest = {k: v for k, v in arguments.items() if k not in config.placeholders}
    in_url = {} if tool_input == "" else arguments  # no `?input=` without an input
    headers = {
        name: fill_header_template(name, value, arguments)
        for name, value in config.headers.items()
        if not is_absent_placeholder(value, arguments)
    }
    styles = config.written_styles
    query = fill_name_value_pairs(config.query, in_url, styles=styles)
    content, content_type = build_request_body(config, arguments, rest)
    if config.method in METHODS_WITHOUT_BODY and content is None:
        query += fill_name_value_pairs({name: f"{{{name}}}" for name in rest}, in_url)
    if content_type.startswith("multipart/"):  # only it names the boundary
        headers = {k: v for k, v in headers.items() if k.lower() != "content-type"}
    if content_type and "content-type" not in map(str.lower, headers):
        headers["content-type"] = content_type
    return Request(
        url=build_request_url(config.url, in_url, query),
        method=config.method,
        headers=headers,
        content=content,
    )


def build_request_url(
    url: str, arguments: dict[str, Any], query: list[tuple[str, str]]
) -> str:
    """Return the URL; an argument cannot leave its segment or parameter."""
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
    encoded = urlencode(own + query, quote_via=quote)  # %20, which all servers decode
    return urlunsplit((parts.scheme, parts.netloc, path, encoded, ""))


def fill_name_value_pairs(
    templates: dict[str, str],
    arguments: dict[str, Any],
    *,
    styles: Mapping[str, str] | None = None,
) -> list[tuple[str, str]]:
    """Return names and values; what has no argument is left out."""
    return [
        pair
        for name, template in templates.items()
        for pair in write_parameter(
            name, fill_text_template(template, arguments), (styles or {}).get(name, "")
        )
    ]


def build_request_body(
    config: HttpConfig, arguments: dict[str, Any], rest: dict[str, Any]
) -> tuple[bytes | None, str]:
    if config.form is not None:
        pairs = fill_name_value_pairs(
            config.form, arguments, styles=config.written_styles
        )
        return (urlencode(pairs).encode(), FORM_TYPE) if pairs else (None, "")
    if config.multipart is not None:
        return build_multipart_body(
            config.multipart, arguments, styles=config.written_styles
        )
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


def fill_header_template(name: str, template: str, arguments: dict[str, Any]) -> str:
    """Return the value of a header; raise `InvalidHeaderValue`."""
    value = PLACEHOLDER.sub(
        lambda m: join_list_value(arguments.get(m[1], "")), template
    )
    if not is_header_value(value):
        raise InvalidHeaderValue(name)
    return value
