"""Making a tool of each built-in function, ready to pick."""

from django.contrib.auth.models import User

from tools.definition.save import save_tool
from tools.models import Tool
from tools.ownership import Visibility
from tools.registry import FunctionTool, get_registered_functions


def ensure_builtin_tools(owner: User) -> list[Tool]:
    """Make what is missing; what a person changed or archived stays that way."""
    known = set(Tool.objects.values_list("slug", flat=True))
    functions = [
        function
        for path, function in get_registered_functions().items()
        if path.startswith("tools.builtin.")
    ]
    return [
        save_tool(build_builtin_tool(function, owner=owner), by=None, note="Built in")
        for function in functions
        if make_function_slug(function) not in known
    ]


def build_builtin_tool(function: FunctionTool, *, owner: User) -> Tool:
    """Return an unsaved tool for everyone, without approval, as declared."""
    return Tool(
        slug=make_function_slug(function),
        name=function.name,
        description=function.description,
        kind="function",
        config={"function": function.path},
        return_direct=function.return_direct,
        effect=function.effect,
        approval=Tool.Approval.NEVER,
        timeout=function.timeout,
        owner=owner,
        visibility=Visibility.EVERYONE,
    )


def make_function_slug(function: FunctionTool) -> str:
    """Return the slug: the name with hyphens."""
    return function.name.lower().replace("_", "-")
