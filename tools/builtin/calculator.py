"""Arithmetic on one expression, with limits, without `eval`."""

import ast
import math
import operator
from collections.abc import Callable
from typing import Any

from simpleeval import InvalidExpression, SimpleEval

from tools.errors import ToolFailed
from tools.registry import tool

MAX_LENGTH = 500
"""Characters of an expression."""

MAX_BITS = 10_000
"""Size of a power or factorial."""

MAX_DIGITS = 1_000
"""Digits of a result."""

SYMBOL_REPLACEMENTS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "^": "**"})


class CannotCalculate(ToolFailed):
    """The expression has no value here."""

    def __init__(self, expression: str, why: str) -> None:
        super().__init__(f"Cannot calculate {expression[:80]!r}: {why.rstrip('.')}.")


class NumberTooLarge(ValueError):
    """A number would take more room than a calculator has."""

    def __init__(self) -> None:
        super().__init__("the numbers get too large")


def require_number(value: Any) -> Any:
    """Return `value`; refuse what is not a number."""
    if not isinstance(value, int | float):
        raise TypeError("only numbers can be calculated with")
    return value


def restrict_to_numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function`, refusing texts and other values: `'%9999d' % 1` is large."""
    return lambda *values: function(*map(require_number, values))


def limited_power(base: Any, exponent: Any) -> Any:
    """Return `base ** exponent` if the result is not too large to work with."""
    whole = isinstance(base, int) and isinstance(exponent, int)
    if whole and base.bit_length() * abs(exponent) > MAX_BITS:
        raise NumberTooLarge
    return base**exponent


def limited_product(left: Any, right: Any) -> Any:
    """Return the product if it is not too large to work with."""
    whole = isinstance(left, int) and isinstance(right, int)
    if whole and left.bit_length() + right.bit_length() > 4 * MAX_BITS:
        raise NumberTooLarge
    return left * right


def factorial(n: Any) -> int:
    if n > 500:
        raise NumberTooLarge
    return math.factorial(n)


def combinations(n: Any, k: Any) -> int:
    if n > 1_000:
        raise NumberTooLarge
    return math.comb(n, k)


def round_number(value: Any, digits: Any = 0) -> Any:
    """Round to `digits` behind the point, or before it if negative."""
    if abs(digits) > 300:
        raise NumberTooLarge
    return round(value, digits) if digits else round(value)


OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    node: restrict_to_numbers(function)
    for node, function in dict[type[ast.AST], Callable[..., Any]](
        {
            ast.Add: operator.add,
            ast.Sub: operator.sub,
            ast.Mult: limited_product,
            ast.Div: operator.truediv,
            ast.FloorDiv: operator.floordiv,
            ast.Mod: operator.mod,
            ast.Pow: limited_power,
            ast.USub: operator.neg,
            ast.UAdd: operator.pos,
        }
    ).items()
}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{
        name: restrict_to_numbers(getattr(math, name))
        for name in (
            *("sqrt", "exp", "log", "log10", "log2", "floor", "ceil", "hypot", "gcd"),
            *("sin", "cos", "tan", "asin", "acos", "atan", "atan2"),
            *("degrees", "radians"),
        )
    },
    "abs": restrict_to_numbers(abs),
    "min": restrict_to_numbers(min),
    "max": restrict_to_numbers(max),
    "round": restrict_to_numbers(round_number),
    "pow": restrict_to_numbers(limited_power),
    "factorial": restrict_to_numbers(factorial),
    "comb": restrict_to_numbers(combinations),
}
CONSTANTS = {"pi": math.pi, "e": math.e, "tau": math.tau}


ALLOWED_NODES: tuple[type[ast.AST], ...] = (
    ast.Expression,
    ast.BinOp,
    ast.UnaryOp,
    ast.Call,
    ast.Constant,
    ast.Name,
    ast.Load,
    *OPERATORS,
)
"""Nodes of a syntax tree that arithmetic needs."""


@tool(effect="read", timeout=5)
def calculator(expression: str) -> int | float:
    """Calculate one arithmetic expression, such as `(3 + 4) * 2 ** 5 / sqrt(2)`.

    Knows + - * / // % ** and brackets; abs, ceil, comb, exp, factorial, floor, gcd,
    hypot, log, log10, log2, max, min, pow, round, sqrt, the trigonometric functions
    in radians; pi, e and tau.

    Args:
        expression: The expression, with numbers only and no units.
    """
    if len(expression) > MAX_LENGTH:
        raise CannotCalculate(expression, f"it is longer than {MAX_LENGTH} characters")
    try:
        return round_float_noise(evaluate(expression))
    except SyntaxError:
        raise CannotCalculate(expression, "it is not one expression") from None
    except (
        *(InvalidExpression, ArithmeticError, ValueError, TypeError, KeyError),
        *(AttributeError, RecursionError, MemoryError),
    ) as error:
        raise CannotCalculate(expression, str(error)) from None


def evaluate(expression: str) -> Any:
    written = expression.strip().rstrip("=").translate(SYMBOL_REPLACEMENTS)
    tree = ast.parse(written, mode="eval")
    if any(not isinstance(node, ALLOWED_NODES) for node in ast.walk(tree)):
        raise TypeError("only numbers, operators and the named functions are known")
    calculator = SimpleEval(operators=OPERATORS, functions=FUNCTIONS, names=CONSTANTS)
    return calculator.eval(written, previously_parsed=tree.body)


def round_float_noise(value: Any) -> int | float:
    """Return a number without the noise of the last binary digits."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("the result is not a number")
    if isinstance(value, int):
        if value.bit_length() > MAX_DIGITS * 3.33:
            raise NumberTooLarge
        return value
    if not math.isfinite(value):
        raise ValueError("the result is not a finite number")
    return float(f"{value:.15g}")
