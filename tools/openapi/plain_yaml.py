"""Parse the YAML that JSON can represent, in bounded time and depth.

Values are built from events, which the parser yields without recursion; the numbers and
words that are not strings are those of YAML 1.2, so `no` and `12:30` are strings.
"""

import re
from dataclasses import dataclass, field
from typing import Any

import yaml
from django.utils.translation import gettext as _

from tools.text.parse_errors import describe_text_error

MAX_DEPTH = 200
"""Lists and objects within each other."""

WORD_VALUES: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
INTEGER = re.compile(r"[-+]?[0-9]{1,300}")
PREFIXED_INTEGER = re.compile(r"0o[0-7]{1,300}|0x[0-9a-fA-F]{1,300}")
DECIMAL = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
TAG_PREFIX = "tag:yaml.org,2002:"


class NotPlainYaml(ValueError):
    """The text is not YAML, or has values that JSON does not have."""


@dataclass
class OpenContainer:
    """A list or object that is being filled."""

    value: list[Any] | dict[str, Any]
    key: str | None = field(default=None)
    """Of the object's next value."""

    @property
    def wants_key(self) -> bool:
        """Whether an object's next scalar is a key."""
        return self.key is None and isinstance(self.value, dict)

    def put(self, value: Any) -> None:
        if isinstance(self.value, list):
            self.value.append(value)
        elif self.key is None:
            raise NotPlainYaml(_("a key is a list or an object"))
        else:
            self.value[self.key] = value
            self.key = None


def read_yaml(text: str) -> Any:
    """Return the value of a document; raise `NotPlainYaml`."""
    documents: list[Any] = []
    within = [OpenContainer(documents)]
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            consume_yaml_event(event, within)
    except yaml.YAMLError as error:
        place, message = describe_text_error(text, error)
        raise NotPlainYaml(
            _("in %(place)s, %(problem)s") % {"place": place, "problem": message}
        ) from None
    if len(documents) > 1:
        raise NotPlainYaml(_("it contains several documents"))
    return documents[0] if documents else None


def consume_yaml_event(event: Any, within: list[OpenContainer]) -> None:
    """Add one event to the innermost list or object."""
    top = within[-1]
    if isinstance(event, yaml.ScalarEvent):
        if top.wants_key:
            top.key = event.value
        else:
            top.put(parse_scalar(event))
    elif isinstance(event, yaml.CollectionStartEvent):
        check_tag(event.tag, ("map", "seq"))
        if len(within) > MAX_DEPTH:
            raise NotPlainYaml(_("it is nested too deeply"))
        inner = OpenContainer({} if isinstance(event, yaml.MappingStartEvent) else [])
        top.put(inner.value)
        within.append(inner)
    elif isinstance(event, yaml.CollectionEndEvent):
        within.pop()
    elif isinstance(event, yaml.AliasEvent):  # a few lines can stand for gigabytes
        raise NotPlainYaml(_("it uses YAML aliases (*name); write the parts out"))


def parse_scalar(event: yaml.ScalarEvent) -> Any:
    check_tag(event.tag, ("str", "int", "float", "bool", "null"))
    is_text = event.tag in ("!", f"{TAG_PREFIX}str")
    is_plain = event.tag is not None or event.implicit[0]
    return parse_plain_scalar(event.value) if is_plain and not is_text else event.value


def check_tag(tag: str | None, known: tuple[str, ...]) -> None:
    """Refuse types that JSON does not have, such as those that run code."""
    if tag not in (None, "!", *(f"{TAG_PREFIX}{one}" for one in known)):
        raise NotPlainYaml(_("it uses the YAML tag “%(tag)s”") % {"tag": tag})


def parse_plain_scalar(text: str) -> Any:
    """Return what an unquoted scalar means."""
    if text in WORD_VALUES:
        return WORD_VALUES[text]
    if INTEGER.fullmatch(text):
        return int(text)
    if PREFIXED_INTEGER.fullmatch(text):
        return int(text, 0)
    return float(text) if DECIMAL.fullmatch(text) else text
