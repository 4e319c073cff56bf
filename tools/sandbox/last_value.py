"""Code whose result is read only if it is small enough.

A value of a few lines can stand for gigabytes once it leaves the sandbox, where limits
count no more: a list of a thousand times the same list of a thousand times one text.
"""

import ast

from tools.errors import ToolFailed

MAX_RESULT = 4 << 20
"""Characters of a result, written out."""

RESULT_NAME = "agentsite_value_"
TOO_LARGE_MARK = "agentsite: the result is too large"
"""What comes out instead of it."""

PARSER_FLAGS = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


class UnreadableCode(ToolFailed):
    """The code is not Python as we know it."""

    def __init__(self, error: Exception) -> None:
        if isinstance(error, SyntaxError) and error.lineno:
            message = f"Line {error.lineno}: {error.msg}."
        elif isinstance(error, MemoryError | RecursionError):
            message = "The code cannot be read: it is nested too deeply."
        else:
            why = getattr(error, "msg", None) or error
            message = f"The code cannot be read: {why}."
        super().__init__(message)


def parse_tool_code(code: str) -> ast.AST:
    """Return the parsed code, none of which runs; raise `CannotRead`."""
    try:
        tree: ast.AST = compile(code, "tool", "exec", PARSER_FLAGS)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UnreadableCode(error) from None
    return tree


def guard_last_value(code: str) -> str:
    """Return `code` such that its last expression is measured inside, then returned.

    It is written out as an f-string does, which no name of the code can stand in for,
    and within the sandbox's own limits. Raise `CannotRead` for what we cannot take
    apart, even where the sandbox could: its value would not be measured.
    """
    code = code.replace("\r\n", "\n").replace("\r", "\n")
    tree = parse_tool_code(code)
    last = tree.body[-1] if isinstance(tree, ast.Module) and tree.body else None
    if not isinstance(last, ast.Expr):
        return code
    begin = get_source_index(code, last.lineno, last.col_offset)
    end = get_source_index(code, last.end_lineno or 0, last.end_col_offset or 0)
    measured = f"f'{{{RESULT_NAME}!r}}'[{MAX_RESULT}:{MAX_RESULT + 1}]"
    return (
        f"{code[:begin]}{RESULT_NAME} = ({code[begin:end]}\n)\n"
        f"{RESULT_NAME} if not {measured} else {TOO_LARGE_MARK!r}"
    )


def get_source_index(code: str, line: int, column: int) -> int:
    """Return the index of a place that the parser names in lines and UTF-8 bytes."""
    lines = code.split("\n")
    before = sum(len(one) + 1 for one in lines[: line - 1])
    return before + len(lines[line - 1].encode()[:column].decode())
