"""YAML with the types of JSON only: read and written without surprises."""

import re
from typing import Any

import yaml

from tools.text.parse_errors import DUPLICATE_KEY

YAML_ONLY_LINE_BREAKS = "\x85\u2028\u2029"
"""Line breaks in YAML only, which would be read as a space."""


class JsonYamlLoader(yaml.SafeLoader):
    """YAML with the scalar types of JSON only: no dates, no `yes`, no merge keys."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        """Refuse a duplicate key: one value would be lost."""
        keys = [key.value for key, _ in node.value if isinstance(key.value, str)]
        if len(set(keys)) < len(keys):
            twice = next(key for key in keys if keys.count(key) > 1)
            raise yaml.MarkedYAMLError(
                problem=f"{twice!r} {DUPLICATE_KEY}", problem_mark=node.start_mark
            )
        return super().construct_mapping(node, deep)

    def flatten_mapping(self, node: Any) -> None:
        """Ignore merge keys: they could expand a small file to a huge one."""


class JsonYamlDumper(yaml.SafeDumper):
    """Quotes exactly the strings that `JsonYamlLoader` would read as another type."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}

    def ignore_aliases(self, _: Any) -> bool:
        """Repeat equal values instead of writing aliases."""
        return True


NUMBER_FIRST_CHARS = list("-0123456789")
for _yaml in (JsonYamlLoader, JsonYamlDumper):
    for _tag, _pattern, _first in (
        ("bool", r"true|false", list("tf")),
        ("null", r"null|~|", ["n", "~", ""]),
        ("int", r"-?(0|[1-9][0-9]*)", NUMBER_FIRST_CHARS),
        (
            "float",
            r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?",
            NUMBER_FIRST_CHARS,
        ),
    ):
        _yaml.add_implicit_resolver(
            f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_pattern})\Z"), _first
        )


def _represent_str(dumper: JsonYamlDumper, text: str) -> yaml.ScalarNode:
    """Write multi-line strings as a block and escape YAML's own line breaks."""
    style = "|" if "\n" in text else None
    if any(end in text for end in YAML_ONLY_LINE_BREAKS):
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


JsonYamlDumper.add_representer(str, _represent_str)


def load_json_yaml(text: str) -> Any:
    """Return the value of one document; raises `yaml.YAMLError`."""
    return yaml.load(text, Loader=JsonYamlLoader)  # noqa: S506  # a SafeLoader with fewer types
