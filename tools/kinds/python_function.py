"""The function that ends the code of a Python tool: it is called with the arguments."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic_core import to_jsonable_python

from tools.errors import ToolFailed
from tools.sandbox.last_value import UnreadableCode, parse_tool_code
from tools.schema.annotation import (
    DateAnnotation,
    UnsupportedAnnotation,
    build_annotation_schema,
)
from tools.schema.signature import parse_docstring
from tools.text.storable import is_storable, replace_unstorable
from tools.text.translatable import TranslatableText, translatable

ARGUMENTS_NAME = "__arguments__"
"""The variable from which the function gets its arguments."""

AnyFunction = ast.FunctionDef | ast.AsyncFunctionDef


class UnsupportedFunction(ToolFailed):
    """The function that ends the code cannot be called with named arguments."""

    def __init__(self, reason: TranslatableText) -> None:
        super().__init__(reason)


@dataclass(frozen=True)
class CodeFunction:
    name: str
    schema: dict[str, Any]
    """Of its arguments, read from the signature and the docstring."""

    def add_call(self, code: str) -> str:
        """Return the code with a call of the function as its last expression."""
        return f"{code}\n{self.name}(**{ARGUMENTS_NAME})"

    def name_input(self, tool_input: Any) -> dict[str, Any]:
        """Return named arguments; a single text input is the only argument."""
        if isinstance(tool_input, dict):
            return tool_input
        names = list(self.schema["properties"])
        if tool_input or len(names) == 1:
            return {names[0] if len(names) == 1 else "input": tool_input}
        return {}

    def find_missing(self, names: Iterable[str]) -> list[str]:
        """Return the required arguments that are not among `names`."""
        given = set(names)
        return [one for one in self.schema.get("required", []) if one not in given]

    def find_mismatch(self, names: Iterable[str]) -> TranslatableText | None:
        """Return why the function cannot be called with these arguments, or None."""
        given = list(names)
        for name in self.find_missing(given):
            return translatable(
                "The function %(function)s() requires the argument “%(name)s”.",
                function=self.name,
                name=name,
            )
        for name in given:
            if name not in self.schema["properties"]:
                return translatable(
                    "The function %(function)s() has no argument “%(name)s”.",
                    function=self.name,
                    name=name,
                )
        return None


@lru_cache(maxsize=32)
def find_code_function(code: str) -> CodeFunction | None:
    """Return the function that is the last statement of `code`; None for others.

    Raise `UnsupportedFunction` for one that cannot be called by name, `UnreadableCode`
    for what is not Python.
    """
    last = find_last_statement(code)
    if not isinstance(last, AnyFunction):
        return None
    if reason := find_function_flaw(last):
        raise UnsupportedFunction(reason)
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    for argument, default in iter_parameters(last):
        schema["properties"][argument.arg] = build_argument_schema(argument, default)
        if default is None:
            schema.setdefault("required", []).append(argument.arg)
    about = parse_docstring(ast.get_docstring(last) or "").parameters
    for name in about.keys() & schema["properties"].keys():
        schema["properties"][name]["description"] = replace_unstorable(about[name])
    return CodeFunction(last.name, schema)


def is_result_missing(code: str) -> bool:
    """Whether readable code ends with a statement that never has a value."""
    try:
        last = find_last_statement(code)
    except UnreadableCode:
        return False
    return last is not None and not isinstance(last, ast.Expr | AnyFunction)


def find_last_statement(code: str) -> ast.stmt | None:
    tree = parse_tool_code(code)
    return tree.body[-1] if isinstance(tree, ast.Module) and tree.body else None


def find_function_flaw(function: AnyFunction) -> TranslatableText | None:
    """Return why the function cannot be called with named arguments, or None."""
    given, line = function.args, function.lineno
    if isinstance(function, ast.AsyncFunctionDef):
        return translatable(
            "Line %(line)s: define the function with def, not with async def.",
            line=line,
        )
    if function.decorator_list:
        return translatable(
            "Line %(line)s: remove the decorators of the function.", line=line
        )
    if any(isinstance(one, ast.Yield | ast.YieldFrom) for one in iter_body(function)):
        return translatable(
            "Line %(line)s: return the result of the function; yield is not supported.",
            line=line,
        )
    if given.posonlyargs:
        return translatable(
            "Line %(line)s: remove the slash (/) from the function, because its "
            "arguments are given by name.",
            line=line,
        )
    if given.vararg or given.kwarg:
        return translatable(
            "Line %(line)s: replace the arguments with a star (*) by named ones, which "
            "a model can fill in.",
            line=line,
        )
    return None


def iter_body(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """Yield what is in a function, but not in functions within it."""
    rest: list[ast.AST] = list(function.body)
    while rest:
        node = rest.pop()
        yield node
        if not isinstance(node, AnyFunction | ast.Lambda):
            rest += ast.iter_child_nodes(node)


def iter_parameters(function: AnyFunction) -> Iterator[tuple[ast.arg, ast.expr | None]]:
    """Yield each parameter with its default."""
    given = function.args
    required = [None] * (len(given.args) - len(given.defaults))
    defaults = [*required, *given.defaults, *given.kw_defaults]
    return zip([*given.args, *given.kwonlyargs], defaults, strict=True)


def build_argument_schema(
    argument: ast.arg, default: ast.expr | None
) -> dict[str, Any]:
    """Return the JSON Schema of an argument; one without an annotation takes all."""
    schema: dict[str, Any] = {}
    try:
        if argument.annotation is not None:
            schema = build_annotation_schema(argument.annotation)
    except DateAnnotation as date:
        reason = translatable(
            "Line %(line)s: the type of the argument “%(name)s” is not supported, "
            "because JSON has no dates. Use str, and convert the text with "
            "%(type)s.fromisoformat().",
            line=argument.lineno,
            name=argument.arg,
            type=date.type_name,
        )
        raise UnsupportedFunction(reason) from None
    except (UnsupportedAnnotation, RecursionError):
        reason = translatable(
            "Line %(line)s: the type of the argument “%(name)s” is not supported. Use "
            "str, int, float, bool, list, dict or Literal.",
            line=argument.lineno,
            name=argument.arg,
        )
        raise UnsupportedFunction(reason) from None
    try:
        value = to_jsonable_python(ast.literal_eval(default)) if default else None
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        value = None  # calculated; the argument is optional all the same
    has_default = value is not None and is_storable(value)
    return {**schema, "default": value} if has_default else schema
