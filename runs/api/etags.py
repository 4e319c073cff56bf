"""ETags, and the `If-Match` header of changes."""

import hashlib

from django.http import HttpRequest

from runs.api.problems import field_problem


def build_etag(state: str) -> str:
    """Return the ETag of a resource whose every change alters `state`."""
    return f'"{hashlib.sha256(state.encode()).hexdigest()[:20]}"'


def check_if_match(request: HttpRequest, etag: str) -> None:
    """Raise a 412 if the resource has changed since the client read it."""
    sent = request.headers.get("If-Match", "*").strip()
    if sent != "*" and etag not in map(str.strip, sent.split(",")):
        message = "It has changed since you read it. Read it again."
        raise field_problem("If-Match", message, 412)
