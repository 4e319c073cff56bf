"""The rows of a site of the previous release, to be upgraded in place.

Before each release, `python -m tests.models.release_data FILE` writes such rows with
the code of that release; then `PREVIOUS_RELEASE` and `DATA` move on.
"""

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.color import no_style
from django.db import connections, transaction

DATA = Path(__file__).parent / "data/release_0_1_0.jsonl"
PREVIOUS_RELEASE = [
    ("runs", "0001_squashed_0021_language"),
    ("tools", "0001_squashed_0006_who_may_use"),
]
"""The last migrations of the previous release; changed with each release."""

ENCRYPTION_KEY = "A" * 43 + "="
"""Encrypts the stored secrets among the rows."""
MODEL = "_model"
LEFT_OUT = {"sessions.session", "runs.loginlink", "runs.worker", "axes.accesslog"}
CREATED_BY_MIGRATIONS = {"auth.permission", "contenttypes.contenttype"}


def read_rows() -> Iterator[dict[str, Any]]:
    for line in DATA.read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def load_rows(apps: Any, *, using: str) -> Counter[str]:
    """Insert the rows with the models of that release; return how many of each."""
    counts, models = Counter[str](), set()
    connection = connections[using]
    with transaction.atomic(using=using), connection.cursor() as cursor:
        for row in read_rows():
            model = apps.get_model(row.pop(MODEL))
            fields = {field.attname: field for field in model._meta.concrete_fields}
            values = {name: fields[name].to_python(row[name]) for name in row}
            model._base_manager.using(using).bulk_create([model(**values)])
            counts[model._meta.db_table] += 1
            models.add(model)
        for statement in connection.ops.sequence_reset_sql(no_style(), models):
            cursor.execute(statement)
    return counts


def main() -> None:
    """Fill the database of AGENTSITE_DATA, and write its rows to a file."""
    os.environ["AGENTSITE_ENCRYPTION_KEYS"] = ENCRYPTION_KEY
    os.environ["AGENTSITE_TOOL_MODULES"] = "tests.worker.functions"
    os.environ["AGENTSITE_PRIVATE_HOSTS"] = "provider=127.0.0.1"
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings")
    import django  # noqa: PLC0415  (after the variables)

    django.setup()
    from tests.models.release_site import fill_site  # noqa: PLC0415  (needs Django)

    fill_site()
    with Path(sys.argv[1]).open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in dump_rows())


def dump_rows() -> Iterator[str]:
    from django.apps import apps  # noqa: PLC0415  (needs Django)
    from django.core.serializers.json import (  # noqa: PLC0415  (needs Django)
        DjangoJSONEncoder,
    )

    for model in apps.get_models(include_auto_created=True):
        label = model._meta.label_lower
        if label in LEFT_OUT | CREATED_BY_MIGRATIONS or model._meta.proxy:
            continue
        names = [field.attname for field in model._meta.concrete_fields]
        for row in model._default_manager.order_by("pk").values(*names):
            line = {MODEL: label, **row}
            yield json.dumps(line, cls=DjangoJSONEncoder, ensure_ascii=False)


if __name__ == "__main__":
    main()
