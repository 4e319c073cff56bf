"""Credentials and MCP servers: who may see and change them, and saving by form."""

from collections.abc import Callable
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import ProtectedError
from django.forms import BaseForm
from django.http import HttpRequest, QueryDict

from runs.api.definitions.common import (
    Definition,
    SharingBody,
    share_definition,
    shared_group_ids,
)
from runs.api.problems import field_problem, form_problem
from tools.definition.delete_unused import delete_unused
from tools.models import Credential, McpServer

StaffRow = Credential | McpServer


def can_see_details(row: StaffRow, user: User) -> bool:
    """Whether the user may see the page of the row in the administration."""
    name = row._meta.model_name
    may = (user.has_perm(f"tools.{do}_{name}") for do in ("view", "change"))
    return user.is_superuser or (user.is_staff and any(may))


def require_right(user: User, codename: str) -> None:
    """Raise a 403 for users who could not open the page of the administration."""
    if not (user.is_staff and user.has_perm(f"tools.{codename}")):
        message = "Only staff with the permission may do this."
        raise field_problem("Authorization", message, 403)


def require_changeable(kind: Definition, user: User, pk: str) -> Any:
    """Return a row that the user may change; raise a 403 or 404."""
    row = kind.require_editable(user, pk)
    require_right(user, f"change_{kind.model._meta.model_name}")
    return row


def save_by_form(
    row: StaffRow,
    body: SharingBody,
    columns: tuple[str, ...],
    open_form: Callable[[QueryDict, StaffRow], BaseForm],
) -> StaffRow:
    """Check the body as the form of the page does, and save it; raise a 422.

    `columns` are the fields that the form has; those that the body leaves out are
    filled with what is stored. Secrets are not among them, so they are kept.
    """
    share_definition(row, body)
    sent = body.model_dump(exclude_unset=True)
    given = QueryDict(mutable=True)
    for name in columns:
        value: Any = sent.get(name, getattr(row, name))
        if isinstance(value, list):
            value = "\n".join(map(str, value))
        if value is not None and value is not False:
            given[name] = str(value)
    for name in set(sent) - {*columns, "groups"}:
        given[name] = str(sent[name])
    given.setlist("groups", [str(pk) for pk in shared_group_ids(row, body)])
    form: Any = open_form(given, row)
    if not form.is_valid():
        raise form_problem(form)
    saved: StaffRow = form.save()
    return saved


def delete_staff_row(
    kind: Definition, request: HttpRequest, user: User, pk: str
) -> None:
    """Delete a row that nothing uses; raise a 403, 404, 409 or 412."""
    require_changeable(kind, user, pk)
    try:
        with transaction.atomic(), kind.lock(request, pk) as row:
            delete_unused(row, by=user)
    except ProtectedError:
        message = f"The {kind.noun} is in use. Change what uses it first."
        raise field_problem("id", message, 409) from None
