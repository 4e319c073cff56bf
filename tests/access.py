"""Who may open which URL: every pattern of the site, and what guards it."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from django.urls import URLPattern, URLResolver


class Door(NamedTuple):
    """One URL pattern: its full name, its route, its view."""

    name: str
    route: str
    view: Callable[..., Any]


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
