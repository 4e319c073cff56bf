"""The text of another product's file, parsed within limits."""

import json
from dataclasses import dataclass
from typing import Any

from django.utils.formats import number_format
from django.utils.translation import gettext as _

from runs.services.importers.errors import ForeignFileRefused
from tools.openapi.plain_yaml import NotPlainYaml, read_yaml
from tools.text.parse_errors import describe_json_error
from tools.text.storable import find_scalar_flaw

MAX_JSON_CHARS = 5_000_000
MAX_OTHER_CHARS = 1_000_000
"""Of YAML and code, which take longer to parse."""
MAX_VALUES = 500_000
MAX_DEPTH = 100


@dataclass(frozen=True)
class ForeignDocument:
    """A file: its text, and its value if it is JSON or YAML."""

    text: str
    data: Any
    name: str = ""
    """Of the file, without folders and ending."""
    is_code: bool = False
    """Whether it is Python or TypeScript; then `data` is None."""

    @property
    def fields(self) -> dict[str, Any]:
        """The top-level object, or an empty one."""
        return self.data if isinstance(self.data, dict) else {}


def parse_foreign_document(text: str, name: str = "") -> ForeignDocument:
    """Parse JSON, YAML or code; raise `ForeignFileRefused`."""
    start = text.lstrip()
    is_json = start.startswith(("{", "["))
    limit = MAX_JSON_CHARS if is_json else MAX_OTHER_CHARS
    if len(text) > limit:
        raise ForeignFileRefused(
            _("The file is too long. Select one of at most %(limit)s characters.")
            % {"limit": number_format(limit, force_grouping=True)}
        )
    if "\0" in text:
        raise ForeignFileRefused(
            _("The file has a character or a number that cannot be stored.")
        )
    if looks_like_code(start):
        return ForeignDocument(text, None, name, is_code=True)
    data = parse_foreign_json(text) if is_json else parse_yaml(text)
    check_limits(data)
    return ForeignDocument(text, data, name)


CODE_STARTS = ("import ", "from ", "const ", "export ", "#!", '"""', "//", "/*", "'use")


def looks_like_code(text: str) -> bool:
    """Whether a file is Python or TypeScript, by its first statement."""
    if text.startswith(CODE_STARTS):
        return True
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return next(lines, "").startswith(CODE_STARTS)


def parse_foreign_json(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        if is_jsonl(text):
            raise ForeignFileRefused(
                _(
                    "This file has an object in each line (JSONL). Import it into a "
                    "dataset."
                )
            ) from None
        flaw = describe_json_error(error)
        raise ForeignFileRefused(
            _("The file is not valid JSON: %(place)s: %(problem)s.")
            % {"place": flaw.position, "problem": flaw.message}
        ) from None
    except (ValueError, RecursionError):
        raise ForeignFileRefused(
            _("The file is nested too deeply, or has a number that is too long.")
        ) from None


def is_jsonl(text: str) -> bool:
    """Whether each of the first lines is an object of its own."""
    lines = [line for line in text.splitlines() if line.strip()][:3]
    try:
        return len(lines) > 1 and all(
            isinstance(json.loads(line), dict) for line in lines
        )
    except (ValueError, RecursionError):
        return False


def parse_yaml(text: str) -> Any:
    try:
        return read_yaml(text)
    except NotPlainYaml as error:
        raise ForeignFileRefused(
            _("The file is not valid YAML: %(problem)s.") % {"problem": error}
        ) from None


def check_limits(data: Any) -> None:
    """Raise if there are too many values, or text that cannot be stored."""
    left, level = MAX_VALUES, [data]
    for _depth in range(MAX_DEPTH):
        left -= len(level)
        if left < 0:
            raise ForeignFileRefused(
                _("The file has more than %(limit)s values.")
                % {"limit": number_format(MAX_VALUES, force_grouping=True)}
            )
        inner: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                inner += [*value, *value.values()]
            elif isinstance(value, list):
                inner += value
            elif find_scalar_flaw(value) is not None:
                raise ForeignFileRefused(
                    _("The file has a character or a number that cannot be stored.")
                )
        if not inner:
            return
        level = inner
    raise ForeignFileRefused(
        _("The file is nested deeper than %(limit)s levels.") % {"limit": MAX_DEPTH}
    )
