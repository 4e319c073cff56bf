"""Tools that are Python written in the browser, run in a sandbox."""

import keyword
import re
from collections.abc import Callable
from typing import Any, Literal

from django.conf import settings
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tools.errors import ToolFailed
from tools.kinds.call import PreparedCall
from tools.kinds.python_function import (
    ARGUMENTS_NAME,
    CodeFunction,
    UnsupportedFunction,
    find_code_function,
)
from tools.net.deadline import Deadline
from tools.sandbox.cpython import run_cpython
from tools.sandbox.cpython_probe import find_sandbox_flaw
from tools.sandbox.failed_frame import FailedFrame, FrameReader
from tools.sandbox.last_value import UnreadableCode
from tools.sandbox.values import to_jsonable
from tools.text.translatable import translatable
from tools.text.validation_message import strip_value_error

MAX_CODE = 50_000
"""Characters."""

ERROR_LINE = re.compile(r"Line ([0-9]{1,6}): ")


class InvalidVariableName(ToolFailed):
    """An argument's name cannot be used in code."""

    def __init__(self, name: str) -> None:
        super().__init__(f"The argument {name!r} is not a name of a Python variable.")


class PythonConfig(BaseModel):
    """The definition, as it is stored and frozen."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    code: str = Field(min_length=1, max_length=MAX_CODE)
    """Its arguments are variables, and the last expression is the result.

    A function at its end is called with the arguments instead.
    """
    memory_mb: int = Field(default=64, ge=4, le=512)
    interpreter: Literal["monty", "cpython"] = "monty"
    """Monty knows a part of Python and costs little; CPython needs the operator."""


def call_python(call: PreparedCall) -> Any:
    try:
        config = PythonConfig.model_validate(call.spec.config)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        why = strip_value_error(first["msg"])
        raise ToolFailed(f"This tool is not configured correctly: {why}.") from None
    function = find_code_function(config.code)
    if function is not None:
        return to_jsonable(call_code_function(function, config, call))
    given = call.tool_input
    inputs = given if isinstance(given, dict) else {"input": given}
    for name in inputs:
        if not is_variable_name(name):
            raise InvalidVariableName(name)
    value = run_in_interpreter(
        config,
        inputs,
        deadline=call.deadline,
        on_print=call.on_print,
        on_failure=call.on_failure,
    )
    return to_jsonable(value)


def call_code_function(
    function: CodeFunction, config: PythonConfig, call: PreparedCall
) -> Any:
    """Run the code with a call of its function added; errors do not name that line."""
    arguments = function.name_input(call.tool_input)
    if mismatch := function.find_mismatch(arguments):
        raise ToolFailed(mismatch)
    last_line = config.code.count("\n") + 1

    def pass_on_frame(frame: FailedFrame) -> None:
        if call.on_failure is not None and frame.line <= last_line:
            call.on_failure(frame)

    try:
        return run_in_interpreter(
            config.model_copy(update={"code": function.add_call(config.code)}),
            {ARGUMENTS_NAME: arguments},
            deadline=call.deadline,
            on_print=call.on_print,
            on_failure=call.on_failure and pass_on_frame,
        )
    except ToolFailed as failed:
        message = str(failed)
        if (find_error_line(message) or 0) > last_line:
            raise ToolFailed(strip_error_line(message)) from None
        raise


def run_in_interpreter(
    config: PythonConfig,
    inputs: dict[str, Any],
    *,
    deadline: Deadline,
    on_print: Callable[[str], None] | None,
    on_failure: FrameReader | None = None,
) -> Any:
    """Run the code in its interpreter; raise `ToolFailed` if that is not allowed."""
    memory = config.memory_mb << 20
    if config.interpreter == "cpython":
        if flaw := find_cpython_flaw():
            raise ToolFailed(flaw)
        deadline.note_slow()
        return run_cpython(
            config.code,
            inputs,
            deadline=deadline,
            memory=memory,
            on_print=on_print,
            on_failure=on_failure,
        )
    # The interpreter is loaded where a tool needs it, not in every process.
    from tools.sandbox.monty import run_monty  # noqa: PLC0415

    return run_monty(
        config.code,
        inputs,
        deadline=deadline,
        memory=memory,
        on_print=on_print,
        on_failure=on_failure,
    )


def find_cpython_flaw() -> str:
    """Return why no tool may use CPython here; empty if one may."""
    if not settings.CPYTHON:
        return translatable(
            "CPython is not enabled on this site. An operator can enable it with "
            "AGENTSITE_CPYTHON=1."
        )
    return find_sandbox_flaw()


def is_variable_name(name: str) -> bool:
    """Whether code can use `name` as a variable."""
    return name.isidentifier() and not keyword.iskeyword(name)


def find_error_line(error: str) -> int | None:
    """Return the line of the code that an error of its call names."""
    match = ERROR_LINE.match(error)
    return int(match[1]) if match else None


def strip_error_line(error: str) -> str:
    """Return an error of the code without the line that it names."""
    return ERROR_LINE.sub("", error, count=1) if find_error_line(error) else error


def find_code_flaw(code: str) -> str | None:
    """Return why `code` cannot be read or called, without running any of it."""
    try:
        find_code_function(code)
    except (UnreadableCode, UnsupportedFunction) as error:
        return str(error)
    return None
