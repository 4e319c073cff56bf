"""n8n: HTTP request tools of an agent."""

import json
import re
from typing import Any

from django.utils.translation import gettext as _

from runs.services.importers.conversion import ConvertedTool, SkippedPart
from runs.services.importers.skipped import skip_setting, skip_tool
from runs.services.importers.templates import build_variable_name
from runs.services.importers.values import as_text, get_path, iter_dicts

FROM_AI = re.compile(
    r"^=\s*\{\{\s*(?:/\*.{0,200}?\*/)?\s*\$fromAI\(\s*['\"`]([^'\"`]{1,60})['\"`]"
    r"(?:\s*,\s*['\"`]([^'\"`]*)['\"`])?(?:\s*,\s*['\"`](\w+)['\"`])?.*?\)\s*\}\}\s*$",
    re.DOTALL,
)
PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]{0,59})\}")
MAX_EXPRESSION = 2_000
TYPES = {"string", "number", "boolean"}
SECRETS = ("predefinedCredentialType", "genericCredentialType")


class NotConvertible(Exception):
    """The request has a part that an HTTP tool cannot have; the message says which."""


def convert_http_tool(
    name: str, given: dict[str, Any], skipped: list[SkippedPart]
) -> ConvertedTool | None:
    """Convert an HTTP request with placeholders, or list it."""
    arguments: dict[str, dict[str, Any]] = {}
    for one in iter_dicts(get_path(given, "placeholderDefinitions", "values")):
        arguments[as_text(one.get("name"))] = build_argument(
            as_text(one.get("type")), as_text(one.get("description"))
        )
    try:
        config = build_config(given, arguments)
    except NotConvertible as problem:
        skipped.append(skip_tool(name, "HTTP", reason=str(problem)))
        return None
    used = set(PLACEHOLDER.findall(json.dumps(config)))
    arguments = {key: value for key, value in arguments.items() if key in used}
    arguments |= {key: {"type": "string"} for key in used if key not in arguments}
    if given.get("authentication") in SECRETS:
        skipped.append(
            skip_setting(
                f"{name}: " + _("credential"),
                reason=_("Select a credential on the page of the tool."),
            )
        )
    return ConvertedTool(
        name=build_variable_name(name),
        kind="http",
        description=as_text(given.get("toolDescription")).removeprefix("=").strip(),
        effect="read" if config["method"] == "GET" else "side_effect",
        args_schema={
            "type": "object",
            "properties": arguments,
            "required": sorted(arguments),
            "additionalProperties": False,
        },
        config=config,
    )


def build_config(
    given: dict[str, Any], arguments: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    """Return the configuration of the request; add arguments that the model gives."""

    def convert(value: Any) -> str:
        """Return a value without expressions; what the model gives is an argument."""
        text = as_text(value)
        if len(text) <= MAX_EXPRESSION and (match := FROM_AI.match(text)):
            key = build_variable_name(match[1])
            arguments[key] = build_argument(match[3], match[2])
            return f"{{{key}}}"
        return refuse_expressions(text)

    url = convert(given.get("url"))
    if not url.startswith(("http://", "https://")):
        raise NotConvertible(_("The URL does not begin with https:// or http://."))
    config: dict[str, Any] = {
        "url": url,
        "method": as_text(given.get("method")) or "GET",
    }
    for target, source in (("query", "Query"), ("headers", "Headers")):
        pairs = find_pairs(given, source)
        values = {
            as_text(one.get("name")): read_pair_value(one, arguments, convert)
            for one in pairs
        }
        if values:
            config[target] = values
    if given.get("sendBody") is True:
        config |= build_body(given, arguments, convert)
    return config


def build_argument(kind: str | None, description: str | None) -> dict[str, Any]:
    """Return the schema of an argument; a type that is not known here is a text."""
    schema = {"type": kind if kind in TYPES else "string"}
    return {**schema, "description": description} if description else schema


def refuse_expressions(text: str) -> str:
    """Return a value as it is sent; raise `NotConvertible` if n8n has to compute it."""
    if text.startswith("=") and "{{" in text:
        raise NotConvertible(
            _("Contains expressions of n8n. Create an HTTP tool instead.")
        )
    return text.removeprefix("=")


def find_pairs(given: dict[str, Any], what: str) -> list[dict[str, Any]]:
    """Return names and values, as the older and the newer node write them."""
    older = get_path(given, f"parameters{what}", "values")
    newer = get_path(given, f"{what.lower()}Parameters", "parameters")
    return [one for one in [*iter_dicts(older), *iter_dicts(newer)] if one.get("name")]


def read_pair_value(
    one: dict[str, Any], arguments: dict[str, dict[str, Any]], convert: Any
) -> str:
    """Return the value of a pair; one that the model gives has the name of the pair."""
    if str(one.get("valueProvider", "")).startswith("model"):
        key = build_variable_name(as_text(one["name"]))
        arguments.setdefault(key, {"type": "string"})
        return f"{{{key}}}"
    return str(convert(one.get("value")))


def build_body(
    given: dict[str, Any], arguments: dict[str, dict[str, Any]], convert: Any
) -> dict[str, Any]:
    """Return the body as JSON or as a form."""
    if given.get("specifyBody") == "json":
        text = refuse_expressions(as_text(given.get("jsonBody")))
        try:
            return {"json": json.loads(text)}
        except (ValueError, RecursionError):
            raise NotConvertible(
                _("The body is not valid JSON. Create an HTTP tool instead.")
            ) from None
    pairs = find_pairs(given, "Body")
    if not pairs:
        raise NotConvertible(
            _("The model writes the body. Create an HTTP tool instead.")
        )
    values = {
        as_text(one["name"]): read_pair_value(one, arguments, convert) for one in pairs
    }
    is_form = given.get("contentType") == "form-urlencoded"
    return {"form" if is_form else "json": values}
