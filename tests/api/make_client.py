"""A client that calls the API as a program does: by token, past the session."""

import json
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client

from runs.services.accounts.tokens import create_token


class Api:
    """One user's token and a way to use it."""

    def __init__(self, user: User | None, **token: Any) -> None:
        self.client = Client(raise_request_exception=False, enforce_csrf_checks=True)
        self.headers = {}
        if user is not None:
            self.headers["Authorization"] = f"Bearer {create_token(user, **token)}"

    def get(self, path: str, **headers: str) -> HttpResponse:
        return self.client.get(f"/api/v1/{path}", headers={**self.headers, **headers})

    def post(self, path: str, body: Any = None, **headers: str) -> HttpResponse:
        return self.send("POST", path, body, **headers)

    def put(self, path: str, body: Any = None, **headers: str) -> HttpResponse:
        return self.send("PUT", path, body, **headers)

    def patch(self, path: str, body: Any = None, **headers: str) -> HttpResponse:
        return self.send("PATCH", path, body, **headers)

    def delete(self, path: str, **headers: str) -> HttpResponse:
        return self.send("DELETE", path, **headers)

    def send(
        self, method: str, path: str, body: Any = None, **headers: str
    ) -> HttpResponse:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.client.generic(
            method,
            f"/api/v1/{path}",
            b"" if body is None else raw,
            content_type="application/json",
            headers={
                **self.headers,
                **{name.replace("_", "-"): value for name, value in headers.items()},
            },
        )


def fields_of(answer: HttpResponse) -> list[str]:
    """Return the fields a problem names, having checked that it is one."""
    assert answer.headers["Content-Type"] == "application/problem+json"
    said = answer.json()
    assert said["status"] == answer.status_code
    assert said["title"]
    assert said["code"]
    assert all(error["message"].endswith((".", "`.")) for error in said["errors"])
    return [error["field"] for error in said["errors"]]
