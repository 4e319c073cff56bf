"""Python code that ends with a function: called with the arguments by name."""

import pytest

from tests.tools.kinds.sandboxes import needs_bubblewrap
from tools.errors import ToolFailed
from tools.kinds.python_function import find_code_function, is_result_missing
from tools.kinds.registry import call_tool
from tools.net.deadline import Deadline
from tools.sandbox.failed_frame import FailedFrame
from tools.spec import ToolSpec

SHARE = """\
LEAST = 1

def share(total: int, parts: int = 2, names: list[str] = []) -> dict:
    print(parts)
    one = total / parts
    return {"one": one, "names": names}
"""
DOUBLE = "def double(text: str) -> str:\n    return text * 2"


def run(code, arguments, *, on_failure=None, interpreter="monty"):
    config = {"code": code, "interpreter": interpreter}
    spec = ToolSpec(name="t", kind="python", config=config, timeout=5.0)
    return call_tool(
        spec, arguments, deadline=Deadline(seconds=30), on_failure=on_failure
    )


@pytest.fixture(params=["monty", pytest.param("cpython", marks=needs_bubblewrap)])
def interpreter(request, settings):
    settings.CPYTHON = True
    return request.param


@pytest.mark.parametrize(
    ("code", "arguments", "value"),
    [
        (SHARE, {"total": 4}, {"one": 2.0, "names": []}),
        (SHARE, {"total": 4, "parts": 4, "names": ["a"]}, {"one": 1, "names": ["a"]}),
        (DOUBLE, {"text": "ab"}, "abab"),
        (DOUBLE, "ab", "abab"),
        ("def f():\n    return 1\n", "", 1),
        ("def f(list: list[str], f: int):\n    return f", {"list": [], "f": 2}, 2),
    ],
)
def test_the_function_is_called_with_the_arguments(interpreter, code, arguments, value):
    assert run(code, arguments, interpreter=interpreter) == value


def test_an_error_names_the_line_of_the_function(interpreter):
    frames = list[FailedFrame]()
    arguments = {"total": 4, "parts": 0}

    with pytest.raises(ToolFailed, match=r"^Line 5: ZeroDivisionError"):
        run(SHARE, arguments, on_failure=frames.append, interpreter=interpreter)

    assert all(frame.line == 5 for frame in frames)
    names = [one.name for frame in frames for one in frame.variables]
    assert names == (["total", "parts", "names"] if interpreter == "cpython" else [])


def test_an_error_does_not_name_the_line_of_the_added_call():
    with pytest.raises(ToolFailed) as caught:
        run("def f():\n    return 'x' * 5_000_000", {})

    assert not str(caught.value).startswith("Line")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "The function share() requires the argument “total”."),
        ({"total": 1, "x": 1}, "The function share() has no argument “x”."),
        ("4", "The function share() requires the argument “total”."),
    ],
)
def test_other_arguments_are_refused_with_a_sentence(arguments, sentence):
    with pytest.raises(ToolFailed) as caught:
        run(SHARE, arguments)

    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("parameter", "schema", "is_required"),
    [
        ("a: str", {"type": "string"}, True),
        ("a: int = 3", {"type": "integer", "default": 3}, False),
        ("a: float", {"type": "number"}, True),
        ("*, a: bool = False", {"type": "boolean", "default": False}, False),
        ("a: list[str]", {"type": "array", "items": {"type": "string"}}, True),
        ("a: dict", {"type": "object", "additionalProperties": True}, True),
        ("a: Literal['c', 'f']", {"type": "string", "enum": ["c", "f"]}, True),
        (
            "a: int | None = None",
            {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            False,
        ),
        (
            "a: Optional[list[Union[int, str]]]",
            {
                "anyOf": [
                    {
                        "type": "array",
                        "items": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
                    },
                    {"type": "null"},
                ]
            },
            True,
        ),
        (
            "a: Dict[str, float]",
            {"type": "object", "additionalProperties": {"type": "number"}},
            True,
        ),
        ("a: Literal[1, -2, 'x']", {"enum": [1, -2, "x"]}, True),
        (
            "a: Literal['c', None]",
            {"type": ["string", "null"], "enum": ["c", None]},
            True,
        ),
        ("a: Literal[1, 'x', None]", {"enum": [1, "x", None]}, True),
        ("a: Sequence[str]", {"type": "array", "items": {"type": "string"}}, True),
        (
            "a: collections.abc.Mapping[str, int]",
            {"type": "object", "additionalProperties": {"type": "integer"}},
            True,
        ),
        ("a: Mapping", {"type": "object", "additionalProperties": True}, True),
        (
            "a: typing.Optional[str] = None",
            {"anyOf": [{"type": "string"}, {"type": "null"}]},
            False,
        ),
        (
            "a: Annotated[int, Field(ge=1), 'How many.'] = 2",
            {"type": "integer", "description": "How many.", "default": 2},
            False,
        ),
        ("a", {}, True),
        ("a: str = today()", {"type": "string"}, False),
        ("a: float = 1e400", {"type": "number"}, False),
        ('a: str = "\\ud800"', {"type": "string"}, False),
    ],
)
def test_an_argument_is_read_from_its_annotation(parameter, schema, is_required):
    function = find_code_function(f"def f({parameter}):\n    return a")

    assert function is not None
    assert function.schema["properties"] == {"a": schema}
    assert function.schema.get("required", []) == (["a"] if is_required else [])


@pytest.mark.parametrize(
    "annotation",
    [
        *("{}", "list[{}]", "Optional[{}]", "Union[int, {}]", "dict[str, {}]"),
        *("Literal[{}.x]", "int | {}", "list[int]({})"),
    ],
)
@pytest.mark.parametrize("is_text", [True, False])
def test_no_part_of_an_annotation_is_run(annotation, is_text, tmp_path):
    made = tmp_path / "made"
    call = f"open({str(made)!r}, 'w')"
    part = annotation.format(repr(call) if is_text else call)

    with pytest.raises(ToolFailed, match="is not supported"):
        find_code_function(f"def f(a: {part}):\n    return a")

    assert not made.exists()


def test_a_long_union_has_each_type_once():
    union = " | ".join(["int", "str", "None"] * 300)

    function = find_code_function(f"def f(a: {union}):\n    return a")

    assert function is not None
    assert [one["type"] for one in function.schema["properties"]["a"]["anyOf"]] == [
        "integer",
        "string",
        "null",
    ]


def test_the_docstring_describes_arguments():
    code = 'def f(a: int):\n    """Do.\n\n    Args:\n        a: How many.\n    """'

    function = find_code_function(code)

    assert function is not None
    assert function.schema["properties"]["a"]["description"] == "How many."


@pytest.mark.parametrize(
    ("code", "part"),
    [
        ("async def f(): pass", "define the function with def"),
        ("def f():\n    yield 1", "yield is not supported"),
        ("def f(a, /): pass", "remove the slash (/)"),
        ("def f(*a): pass", "replace the arguments with a star (*)"),
        ("def f(**a): pass", "replace the arguments with a star (*)"),
        ("@cache\ndef f(): pass", "remove the decorators"),
        ("def f(a: date): pass", "the type of the argument “a” is not supported"),
        (
            "def f(a: date | None): pass",
            "because JSON has no dates. Use str, and convert the text with "
            "date.fromisoformat().",
        ),
        ("def f(a: datetime.datetime): pass", "with datetime.fromisoformat()."),
        ("def f(a: other.str): pass", "the type of the argument “a”"),
        ("def f(a: Annotated[int]): pass", "the type of the argument “a”"),
        ("def f(a: print('x')): pass", "the type of the argument “a”"),
        ("def f(a: 1 | 2): pass", "the type of the argument “a”"),
        ("def f(a: dict[int, str]): pass", "the type of the argument “a”"),
        (f"def f(a: {'list[' * 90}date{']' * 90}): pass", "the type of the argument"),
        ("def f(a: Literal[True]): pass", "the type of the argument “a”"),
        ('def f(a: Literal["\\ud800"]): pass', "the type of the argument “a”"),
    ],
)
def test_a_function_that_cannot_be_called_by_name_is_refused(code, part):
    with pytest.raises(ToolFailed, match=r"^Line [12]: ") as caught:
        find_code_function(code)

    assert part in str(caught.value)


@pytest.mark.parametrize(
    ("code", "is_missing"),
    [
        ("x = 1", True),
        ("class A: pass", True),
        ("for one in []: pass", True),
        ("x = 1\nx", False),
        ("def f(): pass", False),
        ("x +", False),
        ("", False),
    ],
)
def test_code_that_never_has_a_result_is_found(code, is_missing):
    assert is_result_missing(code) is is_missing
