"""Create tools from the operations of an OpenAPI document."""

from collections.abc import Collection

from django.contrib.auth.models import User

from tools.definition.save import save_new_tools
from tools.models import Credential, Tool
from tools.openapi.document import OpenApiDocument
from tools.openapi.operations import list_operations


def import_openapi(
    document: OpenApiDocument,
    keys: Collection[str] | None,
    *,
    by: User,
    base: str = "",
    credential: Credential | None = None,
) -> list[Tool]:
    """Create a tool for each operation in `keys`, or for all if that is None.

    They are stored together or not at all, private, and disabled until a person enables
    them.
    """
    return save_new_tools(
        [
            Tool(
                name=operation.name,
                description=operation.description,
                kind="http",
                config=operation.config,
                args_schema=operation.args_schema,
                effect=operation.effect,
                approval=operation.approval,
                enabled=False,
                owner=by,
                credential=credential,
            )
            for operation in list_operations(document, base=base, keys=keys)
            if not operation.flaw
        ],
        by=by,
        note=f"From the OpenAPI document {document.title!r}",
    )
