"""The text of agent files: YAML or JSON, read with limits, and written."""

import json
import re
from typing import Any

import yaml
from pydantic import ValidationError

from runs.services.agentfile import AgentFile
from runs.services.errors import FieldError, RunsError
from tools.storable import flaw_of_scalar
from tools.text_flaw import TWICE, flaw_of_text

LONGEST = 500_000
"""Characters of a file."""
MOST_VALUES = 50_000
"""Values in a file, aliases counted as often as they are used."""
DEEPEST = 60

ODD_LINE_ENDS = "\x85\u2028\u2029"
"""Line ends to YAML only, which would read them as a space."""


UNION_TAGS = {"bool", "str"}
"""What pydantic puts into the place of an error where a field takes either."""


class AgentFileRefused(RunsError):
    """An agent file has mistakes; each is named with its place in the file."""

    def __init__(self, errors: list[FieldError]) -> None:
        self.errors = errors
        super().__init__("\n".join(f"{e.field}: {e.message}" for e in errors))


class Loader(yaml.SafeLoader):
    """YAML with the plain values of JSON only: no dates, no `yes`, no merge keys."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        """Refuse a key that is there twice, of which one would be lost."""
        keys = [key.value for key, _ in node.value if isinstance(key.value, str)]
        if len(set(keys)) < len(keys):
            twice = next(key for key in keys if keys.count(key) > 1)
            raise yaml.MarkedYAMLError(
                problem=f"{twice!r} {TWICE}", problem_mark=node.start_mark
            )
        return super().construct_mapping(node, deep)

    def flatten_mapping(self, node: Any) -> None:
        """Leave merge keys alone: they could blow a small file up."""


class Dumper(yaml.SafeDumper):
    """Writes what `Loader` reads: quotes exactly what it would take for no text."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}

    def ignore_aliases(self, _: Any) -> bool:
        """Write equal things twice, as a person would."""
        return True


NUMBER = list("-0123456789")
for _yaml in (Loader, Dumper):
    for _tag, _pattern, _first in (
        ("bool", r"true|false", list("tf")),
        ("null", r"null|~|", ["n", "~", ""]),
        ("int", r"-?(0|[1-9][0-9]*)", NUMBER),
        ("float", r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?", NUMBER),
    ):
        _yaml.add_implicit_resolver(
            f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_pattern})\Z"), _first
        )


def _text_with_lines(dumper: Dumper, text: str) -> yaml.ScalarNode:
    """Write texts of several lines as a block; YAML's odd line ends are escaped."""
    style = "|" if "\n" in text else None
    if any(end in text for end in ODD_LINE_ENDS):
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


Dumper.add_representer(str, _text_with_lines)


def read_agentfile(text: str) -> AgentFile:
    """Return what `text` says; raise `AgentFileRefused` with every mistake."""
    found = plain_values(text)
    if not isinstance(found, dict):
        raise _refused("file", "This is no agent file: it must begin `agentfile: 1`.")
    spell_out(found)
    try:
        return AgentFile.model_validate_json(json.dumps(found), strict=True)
    except ValidationError as error:
        raise AgentFileRefused(mistakes_in(error)) from None


def write_agentfile(file: AgentFile) -> str:
    """Return `file` as YAML, without what has its default."""
    shape = {"agentfile": 1, **file.model_dump(mode="json", exclude_defaults=True)}
    for agent in shape.get("agents", ()):
        agent["tools"] = [
            use["tool"] if set(use) == {"tool"} else use
            for use in agent.get("tools", ())
        ]
        if not agent["tools"]:
            del agent["tools"]
    return yaml.dump(
        shape, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=88
    )


def plain_values(text: str) -> Any:
    """Parse the text; raise `AgentFileRefused` where it is too much or no YAML."""
    if len(text) > LONGEST:
        raise _refused("file", f"The file is longer than {LONGEST} characters.")
    try:
        found = parse(text)
        measure(found, "file", [MOST_VALUES], DEEPEST)
    except yaml.YAMLError as error:
        place, told = flaw_of_text(text, error)
        raise _refused(place, f"{told[0].upper()}{told[1:]}.") from None
    except (RecursionError, ValueError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise _refused("file", f"It cannot be read: {why}.") from None
    return found


def parse(text: str) -> Any:
    """Return the values in `text`, which is JSON where it looks like it, else YAML."""
    if text.lstrip().startswith("{"):
        try:
            return json.loads(text, object_pairs_hook=once)
        except json.JSONDecodeError:
            pass  # YAML has such braces too, and tells mistakes by line
    return yaml.load(text, Loader=Loader)  # noqa: S506  # a SafeLoader with fewer types


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the JSON object; refuse a key that is there twice."""
    shape = dict(pairs)
    if len(shape) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"{twice!r} {TWICE}")
    return shape


def measure(value: Any, path: str, left: list[int], depth: int) -> None:
    """Raise where there is too much, or a value that JSON or a database cannot hold."""
    left[0] -= 1
    if left[0] < 0:
        raise _refused("file", f"The file has more than {MOST_VALUES} values.")
    if depth == 0:
        raise _refused("file", f"The file is nested deeper than {DEEPEST} levels.")
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise _refused(path, f"The key {key!r} is not a text. Quote it.")
            measure(key, path, left, depth - 1)
            measure(item, key if path == "file" else f"{path}.{key}", left, depth - 1)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            measure(item, f"{path}[{index}]", left, depth - 1)
    elif (why := flaw_of_scalar(value)) is not None:
        raise _refused(path, why)


def spell_out(found: dict[str, Any]) -> None:
    """Write `tools: [add]` of agents in full, in place."""
    agents = found.get("agents")
    for agent in agents if isinstance(agents, list) else ():
        tools = agent.get("tools") if isinstance(agent, dict) else None
        if isinstance(tools, list):
            agent["tools"] = [
                {"tool": use} if isinstance(use, str) else use for use in tools
            ]


def mistakes_in(error: ValidationError) -> list[FieldError]:
    """Return each mistake with its place, as `agents[0].executor.max_iterations`."""
    found: dict[str, str] = {}
    for problem in error.errors(include_url=False, include_context=False):
        loc = [part for part in problem["loc"] if part not in UNION_TAGS]
        found.setdefault(path_of(loc), sentence_of(problem["type"], problem["msg"]))
    return [FieldError(path, message) for path, message in found.items()]


def sentence_of(kind: str, message: str) -> str:
    """Return what a person should read about one field of a file."""
    if kind == "extra_forbidden":
        return "This field is not known."
    if kind == "missing":
        return "This field is missing."
    if kind == "string_pattern_mismatch":
        return "It must be 1 to 80 letters, digits, hyphens and underscores."
    return message.removeprefix("Value error, ").rstrip(".") + "."


def path_of(loc: "list[int | str]") -> str:
    """Return the place in a file as a person writes it."""
    path = ""
    for part in loc:
        if isinstance(part, int):
            path += f"[{part}]"
        else:
            path += f".{part}" if path else part
    return path or "file"


def _refused(path: str, message: str) -> AgentFileRefused:
    return AgentFileRefused([FieldError(path, message)])
