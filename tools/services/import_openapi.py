"""Making tools of the operations of an OpenAPI document."""

from collections.abc import Collection

from django.contrib.auth.models import User
from django.db import transaction

from tools.models import Credential, Tool
from tools.openapi.document import Document
from tools.openapi.operations import operations_of
from tools.services.save_tool import save_tool


def import_openapi(
    document: Document,
    keys: Collection[str],
    *,
    by: User,
    base: str = "",
    credential: Credential | None = None,
) -> list[Tool]:
    """Make a tool of each operation in `keys`, all or none.

    They are private and switched off until a person has looked at them.
    """
    note = f"From the OpenAPI document {document.title!r}"
    with transaction.atomic():
        return [
            save_tool(
                Tool(
                    name=operation.name,
                    description=operation.description,
                    kind="http",
                    config=operation.config,
                    args_schema=operation.args_schema,
                    effect=operation.effect,
                    enabled=False,
                    owner=by,
                    credential=credential,
                ),
                by=by,
                note=note,
            )
            for operation in operations_of(document, base=base)
            if operation.key in keys and not operation.flaw
        ]
