"""Who may open which URL: every pattern of the site, and what guards it."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from django.urls import URLPattern, URLResolver

ARGUMENT = re.compile(r"<(?:\w+:)?(\w+)>|\(\?P<(\w+)>[^)]*\)")


class Door(NamedTuple):
    """One URL pattern: its full name, its route, its view."""

    name: str
    route: str
    view: Callable[..., Any]

    @property
    def arguments(self) -> list[str]:
        """The names of the arguments in the route."""
        return [one[0] or one[1] for one in ARGUMENT.findall(self.route)]

    def fill(self, values: dict[str, object]) -> str:
        """Return a path that matches, with these arguments."""
        plain = ARGUMENT.sub(lambda one: str(values[one[1] or one[2]]), self.route)
        plain = plain.replace("/?$", "").replace("\\Z", "")
        return "/" + plain.replace("^", "").replace("$", "")


def doors(
    patterns: Iterable[URLPattern | URLResolver], *, route: str = "", space: str = ""
) -> Iterator[Door]:
    """Yield every pattern of the tree."""
    for pattern in patterns:
        here = route + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            inner = f"{space}{pattern.namespace}:" if pattern.namespace else space
            yield from doors(pattern.url_patterns, route=here, space=inner)
        else:
            yield Door(f"{space}{pattern.name or ''}", here, pattern.callback)


def is_open(view: Callable[..., Any]) -> bool:
    """Whether Django's login middleware lets strangers through."""
    return not getattr(view, "login_required", True)
