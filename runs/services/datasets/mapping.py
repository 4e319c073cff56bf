"""Which column of a file becomes which field of an example."""

from typing import Literal

from django.utils.translation import gettext as _

from runs.engine.types import FrozenModel
from runs.services.datasets.content import DEFAULT_INPUT, INPUT_FIELD, MAX_INPUTS
from runs.services.datasets.export import EXPORT_COLUMNS

DuplicateRule = Literal["skip", "update", "add"]

FIELD_NAMES: dict[str, frozenset[str]] = {
    "answer": frozenset(
        (
            *("expected", "expected_answer", "expected_output", "answer", "ideal"),
            *("reference", "reference_answer", "output", "agent_reply", "target"),
            *("ground_truth", "label", "completion", "response", "reply"),
            *("答案", "期望答案", "预期答案", "参考答案", "回答"),
        )
    ),
    "calls": frozenset(
        ("calls", "expected_calls", "tools", "tool_calls", "expected_tools", "工具")
    ),
    "tags": frozenset(("tag", "tags", "category", "topic", "labels", "标签", "分类")),
    "run": frozenset(("run", "run_id", "source_run", "运行")),
}
QUESTION_NAMES = (
    *("input", "question", "query", "prompt", "user", "message", "text", "inputs"),
    *("问题", "输入", "提问"),
)
"""Names of a column with the question, the more specific first."""


class ImportMapping(FrozenModel):
    """What each column is: `input:NAME`, answer, calls, tags, run; empty: nothing."""

    fields: tuple[str, ...]
    """As many as the file has columns."""
    duplicates: DuplicateRule = "skip"

    def positions_of(self, field: str) -> list[int]:
        return [n for n, one in enumerate(self.fields) if one == field]

    @property
    def input_columns(self) -> dict[str, int]:
        return {
            field.removeprefix(INPUT_FIELD): n
            for n, field in enumerate(self.fields)
            if field.startswith(INPUT_FIELD)
        }


def guess_mapping(
    columns: tuple[str, ...], known: list[str], *, is_empty: bool = False
) -> ImportMapping:
    """Return a mapping by the names of the columns.

    `known` are the variables of the dataset; without any, the column that looks like
    the question becomes the variable `input`. Without examples (`is_empty`), an export
    of ours brings its variables along.
    """
    is_own = is_empty and is_own_export(columns)
    if is_own:
        known = [
            name.removeprefix(INPUT_FIELD)
            for name in columns
            if name not in EXPORT_COLUMNS
        ]
    # In our exports, `input:tags` is a variable and `tags` are the tags.
    plain = [name for name in known if INPUT_FIELD + name not in columns]
    guessed = [
        guess_field(name, known if name.startswith(INPUT_FIELD) else plain)
        for name in columns
    ]
    taken: set[str] = set()
    fields = []
    for field in guessed:  # a field that takes one column takes the first
        is_free = field in ("", "tags") or field not in taken
        fields.append(field if is_free else "")
        taken.add(field)
    if not any(field.startswith(INPUT_FIELD) for field in fields):
        position = find_question_column(columns, fields)
        if position is not None:
            fields[position] = INPUT_FIELD + (known[0] if known else DEFAULT_INPUT)
    return ImportMapping(fields=tuple(fields), duplicates="add" if is_own else "skip")


def is_own_export(columns: tuple[str, ...]) -> bool:
    """Whether a file has the columns that all of our exports have."""
    return set(EXPORT_COLUMNS) <= set(columns)


def guess_field(name: str, known: list[str]) -> str:
    """Return the field of a column; empty for an unknown name."""
    if name.removeprefix(INPUT_FIELD) in known:
        return INPUT_FIELD + name.removeprefix(INPUT_FIELD)
    plain = name.strip().lower().replace(" ", "_").replace("-", "_")
    found = (field for field, names in FIELD_NAMES.items() if plain in names)
    return next(found, "")


def find_question_column(columns: tuple[str, ...], fields: list[str]) -> int | None:
    """Return the position of the column that looks like the question."""
    plain = [name.strip().lower() for name in columns]
    for question in QUESTION_NAMES:
        if question in plain and not fields[plain.index(question)]:
            return plain.index(question)
    return None


def list_field_options(column: str, known: list[str]) -> list[tuple[str, str]]:
    own = column.removeprefix(INPUT_FIELD)
    names = dict.fromkeys([*(known or [DEFAULT_INPUT]), own])
    return [
        ("", _("Do not import")),
        *(
            (INPUT_FIELD + name, _("Input: %(name)s") % {"name": name})
            for name in names
        ),
        *list_single_fields(),
    ]


def list_single_fields() -> list[tuple[str, str]]:
    """Return the fields that are not inputs, with labels."""
    return [
        ("answer", _("Expected answer")),
        ("calls", _("Expected calls")),
        ("tags", _("Tags")),
        ("run", _("Source run")),
    ]


def find_mapping_problem(mapping: ImportMapping) -> str:
    """Return why a mapping cannot be used; empty if it can."""
    if not mapping.input_columns:
        return _("Select the column with the input.")
    if len(mapping.input_columns) > MAX_INPUTS:
        return _("An example has at most %(limit)s inputs.") % {"limit": MAX_INPUTS}
    labels = dict(list_single_fields())
    for field in mapping.fields:
        if field not in ("", "tags") and len(mapping.positions_of(field)) > 1:
            label = labels.get(field) or field.removeprefix(INPUT_FIELD)
            return _("Two columns are mapped to %(field)s. Select one.") % {
                "field": label
            }
    return ""
