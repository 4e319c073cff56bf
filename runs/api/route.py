"""A route of the API: what it takes, what it answers, and what a token needs."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from django.http import HttpRequest, HttpResponse
from pydantic import BaseModel

from runs.models import ApiToken

Endpoint = Callable[..., HttpResponse]
Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
Scope = Literal["", "read", "run", "approve", "build", "admin"]

PARAMETER = re.compile(r"\{(\w+)\}")
PARAMETER_PATTERNS = {"name": r"[^/\0]{1,200}"}
NUMBER_PATTERN = r"\d{1,18}"


class ApiRequest(HttpRequest):
    """A request that was let in; annotates what `api_view` sets."""

    api_token: ApiToken | None
    """None for a session, which may only read."""


@dataclass(frozen=True)
class Route:
    """One method of one path.

    `do` takes the request, the user, the parameters of the path as keywords (`{id}` as
    `pk`), and `query` and `body` if the route has them.
    """

    method: Method
    path: str
    """Below `/api/v1/`: `runs/{id}/cancel`."""
    do: Endpoint
    summary: str
    answer: type[BaseModel] | None = None
    """The shape of the response; None if it has no JSON."""
    scope: Scope = ""
    """What a token needs; by default `read` for GET, else `run`."""
    query: type[BaseModel] | None = None
    body: type[BaseModel] | None = None
    status: int = 200
    errors: tuple[int, ...] = ()
    """Statuses of problems besides 401, 403, 404 and 422."""
    media: str = "application/json"
    """Type of the response."""
    is_idempotent: bool = False
    """Whether an `Idempotency-Key` makes repeating the request harmless."""
    keeps_own_keys: bool = False
    """Whether `do` itself looks for what an `Idempotency-Key` has created."""
    cleans_text: bool = False
    """Whether `do` itself removes characters that no database stores."""
    has_etag: bool = False
    """Whether responses have an `ETag`, and changes take an `If-Match`."""

    @property
    def needed_scope(self) -> str:
        return self.scope or ("read" if self.method == "GET" else "run")

    @property
    def tag(self) -> str:
        """The resource, as the document groups routes."""
        return self.path.split("/")[0]

    @property
    def parameters(self) -> list[str]:
        return PARAMETER.findall(self.path)

    @property
    def operation_id(self) -> str:
        return self.do.__name__

    @property
    def pattern(self) -> str:
        """The regular expression of its URL; a trailing slash is accepted."""
        return "^" + PARAMETER.sub(build_parameter_pattern, self.path) + "/?$"


def build_parameter_pattern(found: re.Match[str]) -> str:
    name = found[1]
    pattern = PARAMETER_PATTERNS.get(name, NUMBER_PATTERN)
    return f"(?P<{get_argument_name(name)}>{pattern})"


def get_argument_name(parameter: str) -> str:
    return "pk" if parameter == "id" else parameter


def get_url_name(path: str) -> str:
    """Return the name of a path's URL: `api-run-cancel` for `runs/{id}/cancel`."""
    parts = path.split("/")
    words = []
    for part, following in zip(parts, [*parts[1:], ""], strict=True):
        if PARAMETER.fullmatch(part):
            continue
        is_one = bool(PARAMETER.fullmatch(following))
        words.append(get_singular(part) if is_one else part)
    return "-".join(["api", *words])


def get_singular(plural: str) -> str:
    """Return the name of one: `delivery` of `deliveries`."""
    if plural == "people":
        return "person"
    if plural.endswith("ies"):
        return plural.removesuffix("ies") + "y"
    return plural.removesuffix("s")
