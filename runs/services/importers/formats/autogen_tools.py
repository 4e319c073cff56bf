"""AutoGen Studio: Python functions as Python tools."""

import ast
from typing import Any

from django.utils.translation import gettext as _

from runs.services.importers.conversion import ConvertedTool, SkippedPart
from runs.services.importers.skipped import skip_tool
from runs.services.importers.values import as_list, as_text, iter_dicts
from tools.kinds.python import MAX_CODE, find_code_flaw, is_variable_name

SANDBOX_MODULES = {"datetime", "json", "math", "re", "typing"}
"""What the code of a Python tool can import."""
TYPES = {
    "str": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "list": "array",
    "List": "array",
    "dict": "object",
    "Dict": "object",
}


def convert_function_tool(
    label: str, given: dict[str, Any], skipped: list[SkippedPart]
) -> ConvertedTool | None:
    """Return a Python tool with the code of the function, or list it."""
    source = as_text(given.get("source_code"))
    tree = parse_function_code(source)
    function = find_only_function(tree)
    modules = find_modules(tree) | find_global_imports(given)
    reason = ""
    if function is None or function.args.vararg or function.args.kwarg:
        reason = _("The code is not a single Python function.")
    elif not modules <= SANDBOX_MODULES:
        reason = _("Imports %(modules)s, which the sandbox does not have.") % {
            "modules": ", ".join(sorted(modules - SANDBOX_MODULES))[:200]
        }
    elif isinstance(function, ast.AsyncFunctionDef):
        reason = _("Asynchronous. Rewrite the tool as a plain function.")
    code = build_code(source, function) if function else ""
    reason = reason or find_code_flaw(code) or ""
    if reason or function is None:
        skipped.append(skip_tool(label, "Python", reason=reason))
        return None
    return ConvertedTool(
        name=label,
        kind="python",
        config={"code": code},
        description=as_text(given.get("description")).strip(),
        effect="read",
        args_schema=build_schema(function),
    )


def parse_function_code(source: str) -> ast.Module:
    """Return the parsed code, or none if it is not Python; nothing of it is run."""
    nothing = ast.Module([], [])
    if len(source) > MAX_CODE:
        return nothing
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return nothing


def find_only_function(
    tree: ast.Module,
) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    found = [
        one
        for one in tree.body
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return found[0] if len(found) == 1 else None


def find_modules(tree: ast.Module) -> set[str]:
    """Return the modules that the code imports anywhere."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
    return found


def find_global_imports(given: dict[str, Any]) -> set[str]:
    """Return the modules that the tool declares: as texts, or with names."""
    imports = given.get("global_imports")
    found = {as_text(one) for one in as_list(imports) if isinstance(one, str)}
    found |= {as_text(one.get("module")) for one in iter_dicts(imports)}
    return {one.partition(".")[0] for one in found if one}


def build_code(source: str, function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """Return the function and, as the last expression, its call."""
    names = [one.arg for one in (*function.args.args, *function.args.kwonlyargs)]
    call = ", ".join(f"{name}={name}" for name in names)
    return f"{source.rstrip()}\n\n{function.name}({call})\n"


def build_schema(function: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, Any]:
    """Return the JSON Schema of the arguments, by their annotations."""
    arguments = [*function.args.args, *function.args.kwonlyargs]
    properties = {
        one.arg: build_argument_schema(one.annotation)
        for one in arguments
        if is_variable_name(one.arg)
    }
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def build_argument_schema(annotation: ast.expr | None) -> dict[str, Any]:
    """Return the schema of an annotation; anything unknown is any value."""
    if isinstance(annotation, ast.Subscript):
        annotation = annotation.value
    name = annotation.id if isinstance(annotation, ast.Name) else ""
    return {"type": TYPES[name]} if name in TYPES else {}
