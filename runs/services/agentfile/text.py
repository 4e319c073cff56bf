"""Agent files as text: parse YAML or JSON within limits, and write YAML."""

import json
import re
from collections.abc import Sequence
from typing import Any

import yaml
from pydantic import ValidationError

from runs.services.agentfile.schema import AgentFile
from runs.services.errors import FieldError, RunsError
from tools.text.json_yaml import JsonYamlDumper, load_json_yaml
from tools.text.parse_errors import DUPLICATE_KEY, describe_text_error
from tools.text.storable import find_scalar_flaw
from tools.text.validation_message import strip_value_error

MAX_FILE_CHARS = 500_000
"""Characters of a file."""
MAX_FILE_VALUES = 50_000
"""Values in a file; aliases count each time they are used."""
MAX_FILE_DEPTH = 60
OWN_MARK = re.compile(r"""^[{ \t]{0,50}["']?agentfile["']?[ \t]*:""", re.MULTILINE)
"""The field with the version of an agent file."""

UNION_TAGS = {"bool", "str"}
"""What pydantic adds to the location of an error in a union."""


class AgentFileRefused(RunsError):
    """An agent file has errors, each with its path in the file."""

    def __init__(self, errors: list[FieldError]) -> None:
        self.errors = errors
        super().__init__("\n".join(f"{e.field}: {e.message}" for e in errors))


def parse_agentfile(text: str) -> AgentFile:
    """Return the parsed file; raise `AgentFileRefused` with every error."""
    found = parse_within_limits(text)
    if not isinstance(found, dict):
        raise _build_refusal(
            "file", "This is not an agent file: it must begin with `agentfile: 1`."
        )
    expand_tool_shorthand(found)
    try:
        return AgentFile.model_validate_json(json.dumps(found), strict=True)
    except ValidationError as error:
        raise AgentFileRefused(build_field_errors(error)) from None


def render_agentfile(file: AgentFile, *, comment: Sequence[str] = ()) -> str:
    """Return `file` as YAML, without default values, below the lines of a comment."""
    shape = {"agentfile": 1, **file.model_dump(mode="json", exclude_defaults=True)}
    for agent in shape.get("agents", ()):
        agent["tools"] = [
            use["tool"] if set(use) == {"tool"} else use
            for use in agent.get("tools", ())
        ]
        if not agent["tools"]:
            del agent["tools"]
    text: str = yaml.dump(
        shape, Dumper=JsonYamlDumper, sort_keys=False, allow_unicode=True, width=88
    )
    return "".join(f"# {line}\n" for line in comment) + text


def fits_limits(file: AgentFile) -> bool:
    """Whether an import takes as much; the text of `render_agentfile` may differ."""
    shape = file.model_dump(mode="json", exclude_defaults=True)
    if len(json.dumps(shape, ensure_ascii=False)) > MAX_FILE_CHARS:
        return False
    try:
        check_value_limits(shape, "file", [MAX_FILE_VALUES], MAX_FILE_DEPTH)
    except AgentFileRefused:
        return False
    return True


def parse_within_limits(text: str) -> Any:
    """Parse the text; raise `AgentFileRefused` if it is too large or not valid."""
    if len(text) > MAX_FILE_CHARS:
        raise _build_refusal(
            "file", f"The file is longer than {MAX_FILE_CHARS} characters."
        )
    try:
        found = parse_json_or_yaml(text)
        check_value_limits(found, "file", [MAX_FILE_VALUES], MAX_FILE_DEPTH)
    except yaml.YAMLError as error:
        place, message = describe_text_error(text, error)
        raise _build_refusal(place, f"{message[0].upper()}{message[1:]}.") from None
    except (RecursionError, ValueError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise _build_refusal("file", f"The file cannot be read: {why}.") from None
    return found


def parse_json_or_yaml(text: str) -> Any:
    """Parse as JSON if the text looks like it, else as YAML."""
    if text.lstrip().startswith("{"):
        try:
            return json.loads(text, object_pairs_hook=reject_duplicate_keys)
        except json.JSONDecodeError:
            pass  # YAML has braces too, and its errors name the line
    return load_json_yaml(text)


def reject_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the JSON object; raise on a duplicate key."""
    shape = dict(pairs)
    if len(shape) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"{twice!r} {DUPLICATE_KEY}")
    return shape


def check_value_limits(value: Any, path: str, left: list[int], depth: int) -> None:
    """Raise if there are too many values, or one that cannot be stored."""
    left[0] -= 1
    if left[0] < 0:
        raise _build_refusal(
            "file", f"The file has more than {MAX_FILE_VALUES} values."
        )
    if depth == 0:
        raise _build_refusal(
            "file", f"The file is nested deeper than {MAX_FILE_DEPTH} levels."
        )
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise _build_refusal(
                    path, f"The key {key!r} is not a string. Quote it."
                )
            check_value_limits(key, path, left, depth - 1)
            check_value_limits(
                item, key if path == "file" else f"{path}.{key}", left, depth - 1
            )
    elif isinstance(value, list):
        for index, item in enumerate(value):
            check_value_limits(item, f"{path}[{index}]", left, depth - 1)
    elif (why := find_scalar_flaw(value)) is not None:
        raise _build_refusal(path, why)


def expand_tool_shorthand(found: dict[str, Any]) -> None:
    """Expand `tools: [add]` of agents in place."""
    agents = found.get("agents")
    for agent in agents if isinstance(agents, list) else ():
        tools = agent.get("tools") if isinstance(agent, dict) else None
        if isinstance(tools, list):
            agent["tools"] = [
                {"tool": use} if isinstance(use, str) else use for use in tools
            ]


def build_field_errors(error: ValidationError) -> list[FieldError]:
    """Return each error with its path, as `agents[0].executor.max_iterations`."""
    found: dict[str, str] = {}
    for problem in error.errors(include_url=False, include_context=False):
        loc = [part for part in problem["loc"] if part not in UNION_TAGS]
        found.setdefault(
            format_error_path(loc), format_field_error(problem["type"], problem["msg"])
        )
    return [FieldError(path, message) for path, message in found.items()]


def format_field_error(kind: str, message: str) -> str:
    if kind == "extra_forbidden":
        return "Unknown field."
    if kind == "missing":
        return "This field is missing."
    if kind == "string_pattern_mismatch":
        return "Use 1 to 80 letters, digits, hyphens and underscores."
    return strip_value_error(message).rstrip(".") + "."


def format_error_path(loc: "list[int | str]") -> str:
    path = ""
    for part in loc:
        if isinstance(part, int):
            path += f"[{part}]"
        else:
            path += f".{part}" if path else part
    return path or "file"


def _build_refusal(path: str, message: str) -> AgentFileRefused:
    return AgentFileRefused([FieldError(path, message)])
