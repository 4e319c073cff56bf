"""`@tool` and the schema it makes."""

import re
import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from tools.registry import (
    FunctionTool,
    NotATool,
    ToolContext,
    ToolModuleBroken,
    UnknownFunction,
    find_function,
    get_registered_functions,
    load_tool_modules,
    tool,
)


@tool(effect="read", timeout=3, name="look", return_direct=True)
def look_up(
    city: str,
    days: int = 3,
    unit: Literal["c", "f"] = "c",
    where: Annotated[str | None, Field(description="A hint.")] = None,
) -> str:
    """Look something up.

    It takes a while.

    Args:
        city: Name of the city,
            in any language.
        days (int): How many days.

    Returns:
        A text.
    """
    return f"{city} {days} {unit} {where}"


@tool
def plain(x: float) -> float:
    """Halve.

    :param float x: What to halve.
    :returns: the half
    """
    return x / 2


def found(function: Any) -> FunctionTool:
    return find_function(f"{__name__}:{function.__name__}")


def test_a_registered_function_stays_callable():
    assert look_up("Rome", 1) == "Rome 1 c None"


def test_the_schema_comes_from_signature_and_docstring():
    assert found(look_up).args_schema == {
        "type": "object",
        "additionalProperties": False,
        "required": ["city"],
        "properties": {
            "city": {
                "type": "string",
                "description": "Name of the city, in any language.",
            },
            "days": {"type": "integer", "default": 3, "description": "How many days."},
            "unit": {"type": "string", "enum": ["c", "f"], "default": "c"},
            "where": {
                "anyOf": [{"type": "string"}, {"type": "null"}],
                "default": None,
                "description": "A hint.",
            },
        },
    }


def test_the_description_is_the_docstring_without_its_sections():
    assert found(look_up).description == "Look something up.\n\nIt takes a while."


def test_a_docstring_in_sphinx_style_is_read_too():
    one = found(plain)

    assert one.description == "Halve."
    assert one.args_schema["properties"]["x"]["description"] == "What to halve."


def test_what_is_declared_is_kept():
    one = found(look_up)

    assert (one.name, one.effect, one.timeout) == ("look", "read", 3)
    assert one.return_direct


def test_what_is_not_declared_is_a_side_effect():
    assert found(plain).effect == "side_effect"


def test_registered_lists_functions_by_path():
    assert get_registered_functions()[f"{__name__}:plain"].function is plain


def test_an_unknown_path_is_refused_with_a_sentence():
    with pytest.raises(UnknownFunction, match="'os:system' is not registered"):
        find_function("os:system")


def without_type(a):
    """Have no type."""


def with_rest(*rest: int) -> None:
    """Take any number."""


class Strange:
    pass


def with_strange(a: Strange) -> None:
    """Take a value no model can write."""


@pytest.mark.parametrize(
    ("function", "why"),
    [
        pytest.param(without_type, "'a' has no type", id="no type"),
        pytest.param(with_rest, "cannot be given by name", id="rest"),
        pytest.param(with_strange, "no JSON form", id="no JSON form"),
    ],
)
def test_a_function_no_model_can_call_is_refused(function, why):
    with pytest.raises(NotATool, match=why):
        tool(function)


def test_a_module_that_cannot_be_imported_names_the_variable():
    with pytest.raises(ToolModuleBroken) as caught:
        load_tool_modules(["no_such_module_here"])

    assert "AGENTSITE_TOOL_MODULES" in str(caught.value)
    assert "'no_such_module_here'" in str(caught.value)


def test_a_module_that_ends_the_program_names_the_variable(tmp_path, monkeypatch):
    Path(tmp_path, "quits_at_import.py").write_text("raise SystemExit(2)")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])

    with pytest.raises(ToolModuleBroken, match="quits_at_import"):
        load_tool_modules(["quits_at_import"])


WRONG: dict[str, Any] = {
    "effect": (
        {"effect": "reads"},
        "is not one of read, idempotent",
    ),
    "negative": ({"timeout": -1}, "the timeout -1 is not a positive number of seconds"),
    "text": ({"timeout": "5s"}, "the timeout '5s' is not a positive number of seconds"),
    "name": ({"name": "a[b]"}, "the name 'a[b]' is not valid"),
}


@pytest.mark.parametrize(("words", "why"), WRONG.values(), ids=WRONG)
def test_words_that_mean_nothing_are_refused(words, why):
    def halve(x: float) -> float:
        """Halve."""
        return x / 2

    with pytest.raises(NotATool, match=re.escape(why)):
        tool(**words)(halve)


def test_a_function_without_a_docstring_is_refused():
    def halve(x: float) -> float:
        return x / 2

    with pytest.raises(NotATool, match="it has no docstring"):
        tool(halve)


def test_a_name_without_a_keyword_and_a_partial_are_refused():
    with pytest.raises(NotATool, match=re.escape("@tool(name='halve')")):
        tool("halve")
    with pytest.raises(NotATool, match="it is not a function"):
        tool(partial(look_up, "Rome"))


def test_two_functions_of_one_path_are_refused_but_not_a_module_loaded_again():
    def halve(x: float) -> float:
        """Halve."""
        return x / 2

    first = tool(halve)

    def halve(x: float) -> float:  # the mistake
        """Halve twice."""
        return x / 4

    with pytest.raises(NotATool, match="another function is already registered"):
        tool(halve)
    assert tool(first) is first


def test_two_contexts_are_refused_and_an_optional_one_is_filled_in():
    def both(one: ToolContext, two: ToolContext) -> str:
        """Take two."""
        return ""

    def maybe(context: ToolContext | None = None) -> str:
        """Take one."""
        return ""

    with pytest.raises(NotATool, match="two contexts, 'one' and 'two'"):
        tool(both)
    assert found_local(tool(maybe)).arguments.context == "context"


def test_a_default_of_another_type_is_refused():
    def halve(x: int = "x") -> float:  # type: ignore[assignment]
        """Halve."""
        return x / 2

    with pytest.raises(NotATool, match="the default of .x: int = 'x'. does not fit"):
        tool(halve)


def found_local(function: Any) -> FunctionTool:
    return find_function(f"{__name__}:{function.__qualname__}")
