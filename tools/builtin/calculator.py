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

WRITTEN = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "^": "**"})


class CannotCalculate(ToolFailed):
    """The expression has no value here."""

    def __init__(self, expression: str, why: str) -> None:
        super().__init__(f"Cannot calculate {expression[:80]!r}: {why.rstrip('.')}.")


class TooLarge(ValueError):
    """A number would take more room than a calculator has."""

    def __init__(self) -> None:
        super().__init__("the numbers get too large")


def number(value: Any) -> Any:
    """Return `value`; refuse what is no number."""
    if not isinstance(value, int | float):
        raise TypeError("only numbers can be calculated with")
    return value


def of_numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function`, refusing texts and other values: `'%9999d' % 1` is large."""
    return lambda *values: function(*map(number, values))


def power(base: Any, exponent: Any) -> Any:
    """Return `base ** exponent` where the result is not too large to work with."""
    whole = isinstance(base, int) and isinstance(exponent, int)
    if whole and base.bit_length() * abs(exponent) > MAX_BITS:
        raise TooLarge
    return base**exponent


def product(left: Any, right: Any) -> Any:
    """Return the product where it is not too large to work with."""
    whole = isinstance(left, int) and isinstance(right, int)
    if whole and left.bit_length() + right.bit_length() > 4 * MAX_BITS:
        raise TooLarge
    return left * right


def factorial(n: Any) -> int:
    """Return n! for a small n."""
    if n > 500:
        raise TooLarge
    return math.factorial(n)


def combinations(n: Any, k: Any) -> int:
    """Return how many ways there are to choose k of n."""
    if n > 1_000:
        raise TooLarge
    return math.comb(n, k)


def rounded(value: Any, digits: Any = 0) -> Any:
    """Round to `digits` behind the point, or before it where negative."""
    if abs(digits) > 300:
        raise TooLarge
    return round(value, digits) if digits else round(value)


OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    node: of_numbers(function)
    for node, function in dict[type[ast.AST], Callable[..., Any]](
        {
            ast.Add: operator.add,
            ast.Sub: operator.sub,
            ast.Mult: product,
            ast.Div: operator.truediv,
            ast.FloorDiv: operator.floordiv,
            ast.Mod: operator.mod,
            ast.Pow: power,
            ast.USub: operator.neg,
            ast.UAdd: operator.pos,
        }
    ).items()
}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{
        name: of_numbers(getattr(math, name))
        for name in (
            *("sqrt", "exp", "log", "log10", "log2", "floor", "ceil", "hypot", "gcd"),
            *("sin", "cos", "tan", "asin", "acos", "atan", "atan2"),
            *("degrees", "radians"),
        )
    },
    "abs": of_numbers(abs),
    "min": of_numbers(min),
    "max": of_numbers(max),
    "round": of_numbers(rounded),
    "pow": of_numbers(power),
    "factorial": of_numbers(factorial),
    "comb": of_numbers(combinations),
}
NAMES = {"pi": math.pi, "e": math.e, "tau": math.tau}


ALLOWED: tuple[type[ast.AST], ...] = (
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
        return presentable(evaluate(expression))
    except SyntaxError:
        raise CannotCalculate(expression, "it is not one expression") from None
    except (
        *(InvalidExpression, ArithmeticError, ValueError, TypeError, KeyError),
        *(AttributeError, RecursionError, MemoryError),
    ) as error:
        raise CannotCalculate(expression, str(error)) from None


def evaluate(expression: str) -> Any:
    """Return the raw value."""
    written = expression.strip().rstrip("=").translate(WRITTEN)
    tree = ast.parse(written, mode="eval")
    if any(not isinstance(node, ALLOWED) for node in ast.walk(tree)):
        raise TypeError("only numbers, operators and the named functions are known")
    calculator = SimpleEval(operators=OPERATORS, functions=FUNCTIONS, names=NAMES)
    return calculator.eval(written, previously_parsed=tree.body)


def presentable(value: Any) -> int | float:
    """Return a number without the noise of the last binary digits."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("the result is not a number")
    if isinstance(value, int):
        if value.bit_length() > MAX_DIGITS * 3.33:
            raise TooLarge
        return value
    if not math.isfinite(value):
        raise ValueError("the result is not a finite number")
    return float(f"{value:.15g}")
