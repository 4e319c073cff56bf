"""From a function's signature and docstring to the JSON Schema of its arguments."""

import inspect
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple, NotRequired, get_args, get_type_hints

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic_core import to_jsonable_python
from typing_extensions import TypedDict

from tools.errors import ToolFailed
from tools.schema.base64_bytes import accept_base64, encode_base64

FILLABLE_KINDS = (
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.KEYWORD_ONLY,
)
GOOGLE_ARGUMENTS = re.compile(r"(?m)^(?:Args|Arguments|Parameters):[ \t]*$")
GOOGLE_SECTION = re.compile(r"(?m)^(?:Returns?|Raises|Yields|Examples?|Notes?):")
GOOGLE_ENTRY = re.compile(r"^(\w+)(?:\s*\([^)]*\))?\s*:\s*(.*)$")
SPHINX_FIELD = re.compile(r"(?m)^:(?:param|type|returns?|rtype|raises?)\b")
SPHINX_PARAM = re.compile(
    r"(?ms)^:param (?:[^:]*\s)?(\w+):[ \t]*(.*?)(?=^:|^[ \t]*$|\Z)"
)


class NotATool(TypeError):
    """A function, or what is said of it, cannot be offered to a model."""

    def __init__(self, function: object, why: str) -> None:
        name = getattr(function, "__qualname__", None)
        shown = f"{function.__module__}.{name}" if name else repr(function)
        super().__init__(f"{shown} cannot be a tool: {why}.")


class InvalidArguments(ToolFailed):
    """The arguments do not fit the function."""

    def __init__(self, error: ValidationError) -> None:
        said = [
            ": ".join(filter(None, [".".join(map(str, one["loc"])), one["msg"]]))
            for one in error.errors(include_url=False, include_context=False)
        ]
        super().__init__(f"The arguments are wrong. {'; '.join(said)}.")


class Docstring(NamedTuple):
    """What a docstring says of the function, and of each parameter."""

    text: str
    parameters: dict[str, str]


@dataclass(frozen=True)
class FunctionArguments:
    """The parameters of a function that a model fills in."""

    adapter: TypeAdapter[dict[str, Any]] = field(repr=False)
    schema: dict[str, Any]
    names: tuple[str, ...]
    context: str | None
    """The parameter that is given a `ToolContext`."""

    def convert(self, tool_input: Any) -> dict[str, Any]:
        """Return Python values for `tool_input`; raise `WrongArguments`.

        One text is taken as the only argument of a function that has one.
        """
        if isinstance(tool_input, str) and len(self.names) == 1:
            tool_input = {self.names[0]: tool_input}
        elif tool_input is None or (tool_input == "" and not self.names):
            tool_input = {}
        try:
            return self.adapter.validate_python(tool_input)
        except ValidationError as error:
            raise InvalidArguments(error) from None


def get_function_arguments(
    function: Callable[..., Any], *, context: type
) -> FunctionArguments:
    """Return the arguments of `function`; raise `NotATool` with a sentence."""
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as error:
        raise NotATool(
            function, f"an annotation cannot be resolved ({error})"
        ) from None
    message = parse_docstring(inspect.getdoc(function) or "").parameters
    fields: dict[str, Any] = {}
    context_name = None
    for name, parameter in inspect.signature(function).parameters.items():
        if context in (hints.get(name), *get_args(hints.get(name))):
            if context_name is not None:
                raise NotATool(
                    function, f"it takes two contexts, {context_name!r} and {name!r}"
                )
            context_name = name
        else:
            kind = get_parameter_type(function, parameter, hints)
            check_default(function, parameter, kind)
            fields[name] = build_field_type(kind, parameter.default, message.get(name))
    adapter = build_arguments_adapter(function, fields)
    schema = build_arguments_schema(adapter)
    if has_nested_bytes(schema):
        raise NotATool(
            function,
            "bytes within another type cannot be sent as JSON; take each file as a "
            "parameter of its own, of the type 'bytes'",
        )
    return FunctionArguments(adapter, schema, tuple(fields), context_name)


def get_parameter_type(
    function: Callable[..., Any], parameter: inspect.Parameter, hints: dict[str, Any]
) -> Any:
    """Return the parameter's type; refuse what a model cannot fill in by name."""
    if parameter.kind not in FILLABLE_KINDS:
        raise NotATool(
            function, f"the parameter {str(parameter)!r} cannot be given by name"
        )
    if parameter.name not in hints:
        raise NotATool(function, f"the parameter {parameter.name!r} has no type")
    return hints[parameter.name]


def check_default(
    function: Callable[..., Any], parameter: inspect.Parameter, kind: Any
) -> None:
    """Refuse a default that a model could not give."""
    if parameter.default is inspect.Parameter.empty:
        return
    with suppress(PydanticSchemaGenerationError, PydanticUserError):
        try:
            TypeAdapter(kind).validate_python(parameter.default)
        except ValidationError:
            raise NotATool(
                function, f"the default of {str(parameter)!r} does not fit its type"
            ) from None


def build_field_type(kind: Any, default: Any, description: str | None) -> Any:
    """Return the type of one key: described, and required if there is no default."""
    more: dict[str, Any] = {}
    if default is not inspect.Parameter.empty:
        value = (
            encode_base64(default)
            if isinstance(default, bytes)
            else to_jsonable_python(default, fallback=repr)
        )
        more["json_schema_extra"] = {"default": value}
    marks = getattr(kind, "__metadata__", ())
    if description and not any(getattr(mark, "description", None) for mark in marks):
        more["description"] = description
    kind = accept_base64(kind)
    marked = Annotated[kind, Field(**more)]
    return marked if default is inspect.Parameter.empty else NotRequired[marked]


def build_arguments_adapter(
    function: Callable[..., Any], fields: dict[str, Any]
) -> TypeAdapter[dict[str, Any]]:
    """Return the validator of a dictionary with these keys and no others."""
    make_shape: Any = TypedDict  # for mypy a shape made at run time is none
    shape = make_shape(function.__name__, fields)
    shape.__pydantic_config__ = ConfigDict(extra="forbid")
    try:
        return TypeAdapter(shape)
    except (PydanticSchemaGenerationError, PydanticUserError) as error:
        why = str(error).splitlines()[0].rstrip(".")
        raise NotATool(function, f"a type has no JSON form ({why})") from None


def build_arguments_schema(adapter: TypeAdapter[dict[str, Any]]) -> dict[str, Any]:
    """Return the JSON Schema without the titles that only repeat the names."""
    schema = adapter.json_schema()
    schema.pop("title", None)
    for one in schema.setdefault("properties", {}).values():
        one.pop("title", None)
    return schema


def has_nested_bytes(schema: Any) -> bool:
    """Whether a part of the schema is about bytes that are not sent as Base64."""
    if isinstance(schema, list):
        return any(map(has_nested_bytes, schema))
    if not isinstance(schema, dict):
        return False
    is_bytes = schema.get("type") == "string" and schema.get("format") == "binary"
    return is_bytes or any(map(has_nested_bytes, schema.values()))


def parse_docstring(text: str) -> Docstring:
    """Split a docstring in Google's or Sphinx's style into text and parameters."""
    head, *rest = GOOGLE_ARGUMENTS.split(text, maxsplit=1)
    parameters = parse_google_entries(GOOGLE_SECTION.split(rest[0])[0]) if rest else {}
    parameters |= {
        match[1]: " ".join(match[2].split()) for match in SPHINX_PARAM.finditer(text)
    }
    head = SPHINX_FIELD.split(GOOGLE_SECTION.split(head)[0])[0]
    return Docstring(head.strip(), parameters)


def parse_google_entries(block: str) -> dict[str, str]:
    """Return the entries of an `Args:` block; deeper lines continue an entry."""
    entries: dict[str, str] = {}
    lines = [line for line in block.splitlines() if line.strip()]
    if not lines:
        return {}
    margin = len(lines[0]) - len(lines[0].lstrip())
    name = None
    for line in lines:
        indent = len(line) - len(line.lstrip())
        match = GOOGLE_ENTRY.match(line.strip()) if indent == margin else None
        if match:
            name = match[1]
            entries[name] = match[2].strip()
        elif name is not None and indent > margin:
            entries[name] = f"{entries[name]} {line.strip()}".strip()
    return entries
