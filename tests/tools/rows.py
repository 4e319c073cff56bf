"""Makers of rows for the tests of this folder."""

from typing import Any

from django.contrib.auth.models import User

from tools.models import Tool


def make_user(name: str = "ann", **more: Any) -> User:
    """Return a user, the same for the same name."""
    return User.objects.get_or_create(username=name, defaults=more)[0]


def make_tool(**more: Any) -> Tool:
    """Return a stored tool that adds two numbers, unless said otherwise."""
    values: dict[str, Any] = {
        "name": "add",
        "kind": "function",
        "config": {"function": "tests.tools.functions:add"},
        **more,
    }
    if "owner" not in values:
        values["owner"] = make_user()
    return Tool.objects.create(**values)
