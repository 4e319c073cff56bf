"""Python source code: the calls that names are assigned."""

import ast
from typing import Any

from django.utils.translation import gettext as _

from runs.services.importers.errors import ForeignFileRefused
from runs.services.importers.formats.code_values import MAX_CALLS, Call, Name, Template


def parse_python_calls(text: str) -> dict[str, Call]:
    """Return each call by the name it is assigned to; nothing is run.

    Raise `ForeignFileRefused` if the text is not Python.
    """
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None) or 1
        raise ForeignFileRefused(
            _("The file is not valid Python: see line %(line)s.") % {"line": line}
        ) from None
    functions = {one.name: one for one in body if isinstance(one, ast.FunctionDef)}
    found: dict[str, Call] = {}
    for statement in ast.walk(ast.Module(body, [])):
        if not isinstance(statement, ast.Assign) or len(found) >= MAX_CALLS:
            continue
        target = statement.targets[0]
        if isinstance(target, ast.Name | ast.Attribute) and isinstance(
            statement.value, ast.Call
        ):
            value = read_expression(statement.value, functions)
            if isinstance(value, Call):
                found.setdefault(ast.unparse(target), value)
    return found


def read_expression(
    node: ast.expr, functions: dict[str, ast.FunctionDef], depth: int = 20
) -> Any:
    """Return the value of a literal, a name or a call; None for anything else."""
    if depth == 0:
        return None
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str | int | float | bool) else None
    if isinstance(node, ast.JoinedStr):
        return Template(tuple(map(read_template_part, node.values)))
    if isinstance(node, ast.List | ast.Tuple):
        return [read_expression(one, functions, depth - 1) for one in node.elts]
    if isinstance(node, ast.Dict):
        return {
            str(key.value): read_expression(value, functions, depth - 1)
            for key, value in zip(node.keys, node.values, strict=True)
            if isinstance(key, ast.Constant)
        }
    if isinstance(node, ast.Call):
        return Call(
            ast.unparse(node.func),
            {
                one.arg: read_expression(one.value, functions, depth - 1)
                for one in node.keywords
                if one.arg
            },
            tuple(read_expression(one, functions, depth - 1) for one in node.args),
        )
    if isinstance(node, ast.Name) and node.id in functions:
        returned = find_returned_text(functions[node.id])
        if returned is not None:
            return read_expression(returned, {}, depth - 1)
    return Name(ast.unparse(node)[:200])


def read_template_part(node: ast.expr) -> str | Name:
    if isinstance(node, ast.Constant):
        return str(node.value)
    value = node.value if isinstance(node, ast.FormattedValue) else node
    return Name(ast.unparse(value)[:200])


def find_returned_text(function: ast.FunctionDef) -> ast.expr | None:
    returned = [one.value for one in ast.walk(function) if isinstance(one, ast.Return)]
    texts = [
        one
        for one in returned
        if isinstance(one, ast.JoinedStr)
        or (isinstance(one, ast.Constant) and isinstance(one.value, str))
    ]
    return texts[0] if len(texts) == 1 == len(returned) else None
