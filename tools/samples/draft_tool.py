"""The tool that one pasted request becomes: its values turn into arguments."""

import json
import re
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, NoReturn, get_args
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from django.utils.translation import gettext as _

from tools.audit.masking import SECRET_NAME
from tools.forms.http_tool import METHOD_EFFECTS
from tools.kinds.http_config import FORM_TYPE, METHODS_WITHOUT_BODY, Method
from tools.kinds.placeholders import PLACEHOLDER
from tools.models import Tool
from tools.net.address_flaw import find_address_flaw
from tools.net.reserved_headers import is_reserved_header
from tools.samples.curl_command import FormPart, SampleRequest
from tools.samples.errors import (
    BodyNotSent,
    BodyNotSupported,
    BodyTypeNotSupported,
    NumberNotSent,
    RepeatedFile,
    UnreadableSample,
    UnsupportedOption,
)

BROWSER_HEADERS = re.compile(
    r"(?i)(accept-encoding|user-agent|origin|referer|content-type|priority|dnt|pragma"
    r"|cache-control|sec-.*|upgrade-insecure-requests|te|if-.*)"
)
"""Headers of browsers, which mean nothing to a tool, and those that a body brings."""

JSON_TYPE = "application/json"
NO_FORM = ("{", "[", "<")
"""How JSON and XML begin."""

GRAPHQL = re.compile(
    r"\s*(?:(?:query|mutation|subscription|fragment)\b[^{]*\{|\{(?![\w.-]+\}\s*\Z))"
)
"""How a document begins; `{name}` alone is a placeholder."""

FILE_ATTRIBUTES = {"type": "content_type", "filename": "filename"}


@dataclass
class SampleDraft:
    """A tool that is not stored, with the values of the sample."""

    tool: Tool
    values: dict[str, Any]
    """Arguments that repeat the pasted request."""
    left_out: list[str]
    """Names of secrets that were not taken over."""


@dataclass
class _Arguments:
    """Arguments as they are collected."""

    properties: dict[str, Any] = field(default_factory=dict)
    required: list[str] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    reserved: frozenset[str] = frozenset()
    """Names that stand for other values in the URL or the headers."""

    def place(self, name: str, value: Any, *, needed: bool) -> str:
        """Return a text that has placeholders; add an argument for other values."""
        if isinstance(value, str) and is_template(value):
            return rename_placeholders(value)
        return self.add(name, value, needed=needed)

    def add(self, name: str, value: Any, *, needed: bool) -> str:
        """Add an argument and return its placeholder; a secret value is forgotten."""
        argument = make_argument_name(name)
        while argument in self.properties or argument in self.reserved:
            argument += "_"
        self.properties[argument] = find_value_schema(value)
        if needed:
            self.required.append(argument)
        if value is not None and not SECRET_NAME.search(name):
            self.values[argument] = value
        return f"{{{argument}}}"

    def declare(self, name: str) -> None:
        """Add a required text for a placeholder that the sample itself contained."""
        if name not in self.properties:
            self.properties[name] = {"type": "string"}
            self.required.append(name)


def make_argument_name(name: str) -> str:
    argument = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_") or "value"
    return f"_{argument}" if argument[0].isdigit() else argument


def is_template(text: str) -> bool:
    """Whether a text has placeholders, and no braces besides them."""
    rest, count = PLACEHOLDER.subn("", text)
    return count > 0 and not re.search(r"[{}]", rest)


def rename_placeholders(text: str) -> str:
    """Return the text with the names of arguments, which have no hyphens."""
    return PLACEHOLDER.sub(lambda match: f"{{{make_argument_name(match[1])}}}", text)


def draft_tool_from_sample(sample: SampleRequest) -> SampleDraft:
    """Return the tool that sends the sample's request for other values.

    Secrets stay behind: a credential has to send them. Raise `SampleRefused`.
    """
    if flaw := find_address_flaw(sample.url):
        raise UnreadableSample(flaw)
    if sample.method not in get_args(Method):
        raise UnreadableSample(
            _("tools cannot send %(method)s") % {"method": sample.method[:20]}
        )
    left_out, arguments = list(sample.left_out), _Arguments()
    config: dict[str, Any] = {
        "method": sample.method,
        "url": draft_url(sample, left_out),
    }
    left_out_headers: list[str] = []
    headers = pick_headers(sample, left_out_headers)
    arguments.reserved = frozenset(list_placeholders([config["url"], headers]))
    if query := draft_query(sample, arguments, left_out):
        config["query"] = query
    left_out += left_out_headers
    arguments.reserved |= frozenset(list_placeholders(query))
    config |= draft_body(sample, arguments)
    if "form" not in config and "multipart" not in config:
        headers |= keep_json_type(sample)
    if headers:
        config["headers"] = headers
    for name in list_placeholders(config):
        arguments.declare(name)
    schema: dict[str, Any] = {"type": "object", "properties": arguments.properties}
    if arguments.required:
        schema["required"] = arguments.required
    is_read = METHOD_EFFECTS.get(sample.method) == "read"
    tool = Tool(
        name=make_tool_name(sample),
        kind="http",
        config=config,
        args_schema=schema,
        effect=METHOD_EFFECTS.get(sample.method, "side_effect"),
        approval=Tool.Approval.NEVER if is_read else Tool.Approval.ALWAYS,
    )
    return SampleDraft(tool, arguments.values, list(dict.fromkeys(left_out)))


def draft_url(sample: SampleRequest, left_out: list[str]) -> str:
    """Return the URL without its query; `:id` in the path is the same as `{id}`."""
    parts = urlsplit(sample.url)
    netloc = parts.netloc
    if "@" in netloc:
        left_out.append("Authorization")
        netloc = netloc.rpartition("@")[2]
    path = re.sub(r"/:([A-Za-z_][\w-]*)", r"/{\1}", parts.path)
    return urlunsplit((parts.scheme, netloc, rename_placeholders(path), "", ""))


def draft_query(
    sample: SampleRequest, arguments: _Arguments, left_out: list[str]
) -> dict[str, str]:
    """Return the query with placeholders."""
    pairs = parse_qsl(urlsplit(sample.url).query, keep_blank_values=True)
    if sample.is_query:
        pairs += parse_qsl("&".join(sample.data), keep_blank_values=True)
    query: dict[str, str] = {}
    for name, value in group_pairs(pairs).items():
        if SECRET_NAME.search(name):
            left_out.append(name)
        else:
            query[name] = arguments.place(name, value, needed=False)
    return query


def group_pairs(pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """Return the value of each name; the texts of a repeated one are a list."""
    given: dict[str, list[str]] = {}
    for name, text in pairs:
        given.setdefault(name, []).append(text)
    return {
        name: parse_text(texts[0]) if len(texts) == 1 else texts
        for name, texts in given.items()
    }


def pick_headers(sample: SampleRequest, left_out: list[str]) -> dict[str, str]:
    """Return the headers that a tool sends as they are."""
    found = {}
    for name, value in sample.headers:
        if SECRET_NAME.search(name):
            left_out.append(name)
        elif not (is_reserved_header(name) or BROWSER_HEADERS.fullmatch(name)):
            found[name] = rename_placeholders(value)
    return found


def draft_body(sample: SampleRequest, arguments: _Arguments) -> dict[str, Any]:
    """Return the body with placeholders; without any, remaining arguments are sent."""
    if not sample.has_body:
        return {}
    if sample.method in ("GET", "HEAD"):
        raise BodyNotSent(sample.method)
    if sample.parts:
        return {"multipart": draft_multipart(sample, arguments)}
    declared = strip_parameters(find_content_type(sample))
    text = "&".join(sample.data)
    body = load_json_object(text)
    if body is not None:
        return draft_json_body(body, arguments, method=sample.method)
    if declared not in ("", FORM_TYPE, JSON_TYPE):
        raise BodyTypeNotSupported(declared)
    if declared == JSON_TYPE or text.lstrip().startswith(NO_FORM) or "=" not in text:
        raise BodyNotSupported
    pairs = parse_qsl(text, keep_blank_values=True)
    return {
        "form": {
            name: arguments.place(name, value, needed=True)
            for name, value in group_pairs(pairs).items()
        }
    }


def draft_multipart(sample: SampleRequest, arguments: _Arguments) -> dict[str, Any]:
    """Return the fields of a form; a file becomes an argument with its content."""
    given: dict[str, list[FormPart]] = {}
    for part in sample.parts:
        given.setdefault(part.name, []).append(part)
    found: dict[str, Any] = {}
    for name, parts in given.items():
        has_file = any(part.is_file for part in parts)
        if has_file and len(parts) > 1:
            raise RepeatedFile(name)
        if has_file:
            found[name] = draft_file(parts[0], arguments)
            continue
        texts = [part.value for part in parts]
        value = texts if len(texts) > 1 else texts[0]
        found[name] = arguments.place(name, value, needed=True)
    return found


def draft_file(part: FormPart, arguments: _Arguments) -> dict[str, Any]:
    path, *attributes = part.value.split(";")
    place = arguments.add(part.name, None, needed=True)
    schema = arguments.properties[place.strip("{}")]
    schema["contentEncoding"] = "base64"
    found = {
        "content": place,
        "encoding": "base64",
        "filename": re.split(r"[/\\]", path)[-1],
    }
    for attribute in attributes:
        name, _equals, text = attribute.strip().partition("=")
        if name not in FILE_ATTRIBUTES:
            raise UnsupportedOption(f";{attribute}")
        found[FILE_ATTRIBUTES[name]] = text
    return found


def draft_json_body(
    body: dict[str, Any], arguments: _Arguments, *, method: str
) -> dict[str, Any]:
    """Return the JSON with a placeholder for each member, or nothing if all fit."""
    elsewhere = arguments.reserved | set(arguments.properties)
    is_plain_query = is_graphql(body)
    template = {
        name: arguments.add(name, value, needed=value is not None)
        if name == "query" and is_plain_query
        else arguments.place(name, value, needed=value is not None)
        for name, value in body.items()
    }
    is_plain = all(value == f"{{{name}}}" for name, value in template.items())
    has_others = len(arguments.properties) > len(template)
    is_own = elsewhere.isdisjoint(template)  # others would be sent only there
    is_sent = method not in METHODS_WITHOUT_BODY  # without a template
    is_left_out = is_plain and is_own and is_sent and not has_others
    return {} if is_left_out else {"json": template}


def is_graphql(body: dict[str, Any]) -> bool:
    """Whether the braces of `query` are those of GraphQL."""
    query = body.get("query")
    return isinstance(query, str) and GRAPHQL.match(query) is not None


def list_placeholders(shape: Any) -> list[str]:
    """Return the names of all placeholders, each once."""
    text = json.dumps(shape, ensure_ascii=False)
    return list(dict.fromkeys(PLACEHOLDER.findall(text)))


def find_content_type(sample: SampleRequest) -> str:
    """Return the declared type of the body, or nothing."""
    given = {name.lower(): value for name, value in sample.headers}
    return given.get("content-type", JSON_TYPE if sample.is_json else "")


def strip_parameters(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def keep_json_type(sample: SampleRequest) -> dict[str, str]:
    """Return the header of a JSON body whose type tools do not send by themselves."""
    declared = find_content_type(sample) if sample.has_body else ""
    is_sent = strip_parameters(declared) in ("", JSON_TYPE)
    return {} if is_sent else {"Content-Type": declared}


def load_json_object(text: str) -> dict[str, Any] | None:
    """Return the object; None for other text. Raise `NumberNotSent` for NaN."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        found: dict[str, Any] = json.loads(
            text, parse_float=parse_finite_number, parse_constant=refuse_number
        )
    except (ValueError, RecursionError):
        return None
    return found


def parse_finite_number(text: str) -> float:
    number = float(text)
    return number if isfinite(number) else refuse_number(text)


def refuse_number(text: str) -> NoReturn:
    raise NumberNotSent(text)


def parse_text(text: str) -> Any:
    """Return a number or truth value that a query holds as text; else the text."""
    if re.fullmatch(r"-?(0|[1-9][0-9]{0,14})", text):
        return int(text)
    if text in ("true", "false"):
        return text == "true"
    return text


def find_value_schema(value: Any) -> dict[str, Any]:
    match value:
        case bool():
            return {"type": "boolean"}
        case int():
            return {"type": "integer"}
        case float():
            return {"type": "number"}
        case list():
            items = [find_value_schema(one) for one in value]
            is_same = bool(items) and all(one == items[0] for one in items)
            return {"type": "array", **({"items": items[0]} if is_same else {})}
        case dict():
            return {"type": "object"}
    return {"type": "string"}


def make_tool_name(sample: SampleRequest) -> str:
    """Return a name such as `get_orders`, from the method and the path."""
    path = re.sub(r":[\w-]+|\{[^{}]*\}", "", urlsplit(sample.url).path)
    words = re.findall(r"[A-Za-z][A-Za-z_-]*", path)
    nouns = [word for word in words if word not in ("api", "v", "json")]
    noun = nouns[-1] if nouns else urlsplit(sample.url).hostname or "request"
    stem = re.sub(r"[^a-z0-9]+", "_", noun.lower()).strip("_")
    return f"{sample.method.lower()}_{stem}"[:64]
