"""`@tool`: registers a typed, documented Python function as something agents may call.

    from tools.registry import tool

    @tool(effect="read")
    def population(city: str) -> int:
        '''Return how many people live in `city`.'''

The function stays callable. What is not declared counts as a side effect.
"""

import importlib
import inspect
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from typing import Any, TypeVar, get_args, overload

from tools.errors import ToolFailed
from tools.net.deadline import Deadline
from tools.schema.signature import (
    FunctionArguments,
    NotATool,
    get_function_arguments,
    parse_docstring,
)
from tools.spec import Effect
from tools.tool_name import is_tool_name

__all__ = [
    "FunctionTool",
    "NotATool",
    "ToolContext",
    "ToolModuleBroken",
    "ToolUser",
    "UnknownFunction",
    "find_function",
    "supports_host_limit",
    "load_tool_modules",
    "get_registered_functions",
    "tool",
]

F = TypeVar("F", bound=Callable[..., Any])

_registered_functions: dict[str, "FunctionTool"] = {}


class ToolModuleBroken(Exception):
    """A module named by the operator cannot be imported."""

    def __init__(self, module: str, why: BaseException) -> None:
        super().__init__(
            f"The variable AGENTSITE_TOOL_MODULES names {module!r}, which cannot be "
            f"imported: {type(why).__name__}: {why}."
        )


class UnknownFunction(ToolFailed):
    """The path names no registered function."""

    def __init__(self, path: str) -> None:
        module, _, name = path.rpartition(".")
        meant = f"{module}:{name}"
        super().__init__(
            f"The function {path!r} is not registered. Did you mean {meant!r}?"
            if meant in _registered_functions
            else f"The function {path!r} is not registered; its module has to be named "
            "in AGENTSITE_TOOL_MODULES."
        )


class SecretMissing(ToolFailed):
    """The function needs a secret, and its tool has no credential."""

    def __init__(self) -> None:
        super().__init__("This tool needs a credential. Select one on the tool's page.")


@dataclass(frozen=True)
class ToolUser:
    """The person on whose behalf a call is made."""

    id: int
    username: str


@dataclass(frozen=True)
class ToolContext:
    """What a function may know of its call: take a parameter annotated with this."""

    deadline: Deadline
    """Its deadline and cancel flag."""
    idempotency_key: str = ""
    """The same for each try of one call; give it to servers that know such keys."""
    run_id: int | None = None
    hosts: tuple[str, ...] = ()
    """The only hosts the tool may reach; empty for every public one."""
    user: ToolUser | None = None
    """Who started the run, or tests the tool; None for calls of neither."""
    credential_secret: str | None = field(default=None, repr=False)
    send_progress: Callable[[str], None] | None = field(
        default=None, repr=False, compare=False
    )

    @property
    def secret(self) -> str:
        """The secret of the tool's credential; raise `SecretMissing` without one."""
        if self.credential_secret is None:
            raise SecretMissing
        return self.credential_secret

    def report_progress(self, text: str) -> None:
        """Show a line such as `3 of 10 pages` on the run's page during the call."""
        if self.send_progress is not None:
            with suppress(Exception):  # progress never fails a call
                self.send_progress(str(text))


@dataclass(frozen=True)
class FunctionTool:
    """A registered function, and what was declared of it."""

    path: str
    """`module:function`, as definitions and agent files name it."""
    function: Callable[..., Any] = field(repr=False)
    name: str
    description: str
    arguments: FunctionArguments = field(repr=False)
    effect: Effect
    timeout: float
    isolated: bool
    return_direct: bool
    keeps_hosts: bool = False
    """Whether it reaches no host beyond `ToolContext.hosts`, as it declares."""
    variables: tuple[str, ...] = ()
    """Environment variables that an isolated call gets beside the usual ones."""

    @property
    def args_schema(self) -> dict[str, Any]:
        return self.arguments.schema


@overload
def tool(function: F, /) -> F: ...


@overload
def tool(
    *,
    effect: Effect = ...,
    timeout: float = ...,
    isolated: bool = ...,
    name: str | None = ...,
    return_direct: bool = ...,
    keeps_hosts: bool = ...,
    variables: tuple[str, ...] = ...,
) -> Callable[[F], F]: ...


def tool(
    function: F | None = None,
    /,
    *,
    effect: Effect = "side_effect",
    timeout: float = 60.0,
    isolated: bool = False,
    name: str | None = None,
    return_direct: bool = False,
    keeps_hosts: bool = False,
    variables: tuple[str, ...] = (),
) -> F | Callable[[F], F]:
    """Register a function; `timeout` in seconds, `isolated`: in a process of its own.

    `keeps_hosts`: it reaches no host beyond `ToolContext.hosts`. Without that word its
    tool cannot be limited to hosts, since nothing else would hold it to them.
    `variables`: what an isolated function needs of the environment, such as a key.
    Raise `NotATool` for what cannot be offered to a model.
    """

    def register(function: F) -> F:
        check_function(function)
        path = f"{function.__module__}:{function.__qualname__}"
        check_declaration(
            function,
            path,
            name=name or function.__name__,
            effect=effect,
            timeout=timeout,
        )
        _registered_functions[path] = FunctionTool(
            path=path,
            function=function,
            name=name or function.__name__,
            description=parse_docstring(inspect.getdoc(function) or "").text,
            arguments=get_function_arguments(function, context=ToolContext),
            effect=effect,
            timeout=timeout,
            isolated=isolated,
            return_direct=return_direct,
            keeps_hosts=keeps_hosts,
            variables=tuple(variables),
        )
        return function

    return register if function is None else register(function)


def check_function(function: object) -> None:
    """Raise `NotATool` for anything but a function with a docstring."""
    if isinstance(function, str):
        raise NotATool(
            function, f"a name is given by keyword: @tool(name={function!r})"
        )
    if not inspect.isroutine(function):
        raise NotATool(
            function, "it is not a function; define a function that calls it"
        )
    if not parse_docstring(inspect.getdoc(function) or "").text:
        raise NotATool(
            function,
            "it has no docstring, which models read as the description of the tool",
        )


def check_declaration(
    function: Callable[..., Any], path: str, *, name: str, effect: str, timeout: object
) -> None:
    """Raise `NotATool` for words of `@tool` that mean nothing."""
    effects = get_args(Effect)
    if effect not in effects:
        raise NotATool(
            function, f"the effect {effect!r} is not one of {', '.join(effects)}"
        )
    is_number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
    if not is_number or not 0 < timeout < inf:  # type: ignore[operator]  # a number
        raise NotATool(
            function, f"the timeout {timeout!r} is not a positive number of seconds"
        )
    if not is_tool_name(name):
        raise NotATool(function, f"the name {name!r} is not valid")
    known = _registered_functions.get(path)
    if known is not None and get_source(known.function) != get_source(function):
        raise NotATool(function, f"another function is already registered as {path!r}")


def get_source(function: Callable[..., Any]) -> tuple[str, int] | None:
    """Return where a function is defined: a module that is loaded again is the same."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return (code.co_filename, code.co_firstlineno) if code else None


def get_registered_functions() -> dict[str, FunctionTool]:
    """Return all registered functions by path, in alphabetical order."""
    return dict(sorted(_registered_functions.items()))


def find_function(path: str) -> FunctionTool:
    """Return the function at `module:function`; raise `UnknownFunction`."""
    try:
        return _registered_functions[path]
    except KeyError:
        raise UnknownFunction(path) from None


def supports_host_limit(path: str) -> bool:
    """Whether the function at `module:function` can be limited to hosts."""
    return path in _registered_functions and _registered_functions[path].keeps_hosts


def load_tool_modules(modules: Iterable[str]) -> None:
    """Import what registers functions; raise `ToolModuleBroken` with a sentence."""
    for module in modules:
        try:
            importlib.import_module(module)
        except (Exception, SystemExit) as error:  # foreign code
            raise ToolModuleBroken(module, error) from error
