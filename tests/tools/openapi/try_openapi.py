"""Importing real OpenAPI documents through the admin's pages, a table line for each.

`python -m tests.tools.openapi.try_openapi FILE …` in a database of its own:
all operations are shown and made into tools, then some of the tools are opened and
saved, and what a call would send is shown. `--requests` prints those requests too.
"""

import argparse
import json
import os
import re
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from django import forms

from tests.support.html import Fields
from tools.openapi.bodies import FILE_PROPERTIES

PAGE = "/admin/tools/tool/import/"
SERVER = "https://server.example/"
"""Stands for a server that a document does not name."""
SERVERS = re.compile(r"""["']?servers["']?:\s*(\[|-)\s*[^\[\]]{0,200}?https?://""")
OPENED = 12
"""Tools whose pages are opened."""


class Tried(NamedTuple):
    """What became of one document."""

    version: str = ""
    operations: int = 0
    taken: int = 0
    seconds: tuple[float, float] = (0, 0)
    """To show the operations, and to make all tools."""
    megabytes: int = 0
    """Of memory, more than before."""
    refused: Counter[str] = Counter()
    """Reasons, and how often."""
    faults: tuple[str, ...] = ()
    """Pages that broke."""
    requests: tuple[str, ...] = ()


def main(given: list[str]) -> int:
    """Print the table; return 1 where a page broke."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--requests", action="store_true")
    options = parser.parse_args(given)
    start_django()
    say("| document | version | operations | taken | show s | make s | MB | refused |")
    say("|---" * 8 + "|")
    faults = 0
    for path in options.files:
        tried = in_a_process_of_its_own(path)
        say(line_of(path, tried))
        for text in (*tried.faults, *(tried.requests if options.requests else ())):
            say(f"    {text}")
        faults += len(tried.faults)
    return 1 if faults else 0


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def start_django() -> None:
    """Make an empty database with one superuser."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    import django  # noqa: PLC0415  # after the settings are named

    django.setup()
    from django.contrib.auth.models import User  # noqa: PLC0415  # needs setup
    from django.test.utils import (  # noqa: PLC0415  # needs setup
        setup_databases,
        setup_test_environment,
    )

    setup_test_environment()
    setup_databases(verbosity=0, interactive=False)
    User.objects.create_superuser("admin")


def in_a_process_of_its_own(path: Path) -> Tried:
    """Try one document, so that its memory is its own and its tools are gone after."""
    from django.db import connection  # noqa: PLC0415  # needs setup

    connection.close()
    reading, writing = os.pipe()
    if pid := os.fork():
        os.close(writing)
        with os.fdopen(reading) as pipe:
            text = pipe.read()
        os.waitpid(pid, 0)
        raw = json.loads(text or '{"faults": ["the process died"]}')
        return Tried(**{**raw, "refused": Counter(raw.get("refused"))})
    try:
        with os.fdopen(writing, "w") as pipe:
            json.dump(tried(path)._asdict(), pipe)
    finally:
        os._exit(0)


def tried(path: Path) -> Tried:
    """Import all of a document; nothing is kept."""
    from django.db import transaction  # noqa: PLC0415  # needs setup

    with transaction.atomic():
        found = imported(path)
        transaction.set_rollback(True)
    return found


def imported(path: Path) -> Tried:
    """Give the document to the page, choose all, and open some of the tools."""
    from django.core.files.uploadedfile import (  # noqa: PLC0415  # needs setup
        SimpleUploadedFile,
    )
    from django.test import Client  # noqa: PLC0415  # needs setup

    from tools.models import Tool  # noqa: PLC0415  # needs setup

    client = Client()
    client.force_login(user_named_admin())
    client.get(PAGE)
    before = peak()
    base = SERVER if needs_server(path) else ""
    file = SimpleUploadedFile(path.name, path.read_bytes())
    begun = time.perf_counter()
    shown = client.post(PAGE, {"file": file, "base": base}, follow=True)
    middle = time.perf_counter()
    if "choice" not in (shown.context or {}):
        errors = shown.context["form"].errors if shown.context else {"": ["no page"]}
        why = " ".join(text for listed in errors.values() for text in listed)
        return Tried(refused=Counter({why: 1}), seconds=(round(middle - begun, 2), 0))
    operations = shown.context["choice"].operations
    document = shown.context["document"].body
    again = time.perf_counter()
    client.post(shown.request["PATH_INFO"], {"all": "1"})
    ended = time.perf_counter()
    memory = peak() - before
    made = list(Tool.objects.order_by("pk"))
    requests, faults = opened(client, made[:: max(1, len(made) // OPENED)])
    return Tried(
        version=str(document.get("openapi") or document.get("swagger")),
        operations=len(operations),
        taken=len(made),
        seconds=(round(middle - begun, 2), round(ended - again, 2)),
        megabytes=memory,
        refused=Counter(one.flaw for one in operations if one.flaw),
        requests=tuple(requests),
        faults=tuple(faults),
    )


def needs_server(path: Path) -> bool:
    """Whether a document names no server in full, which a person then types in."""
    return not SERVERS.search(path.read_text("utf-8"))


def user_named_admin() -> Any:
    """Return the superuser."""
    from django.contrib.auth.models import User  # noqa: PLC0415  # needs setup

    return User.objects.get()


def peak() -> int:
    """Return the most memory this process has had, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def opened(client: Any, tools: list[Any]) -> tuple[list[str], list[str]]:
    """Open and send the forms of tools; return the requests shown, and what broke."""
    requests, faults = [], []
    for tool in tools:
        change, trial = (
            f"/admin/tools/tool/{tool.pk}/{one}/" for one in ("change", "try")
        )
        fields = Fields(client.get(change).content.decode()).sent
        saved = client.post(change, {**fields, "_save": "Save"})
        if saved.status_code != 302:
            errors = saved.context["adminform"].form.errors.as_json()
            faults.append(f"{tool.name} cannot be saved: {errors}")
        if tool.revisions.count() != 1:
            faults.append(f"{tool.name} is another one after it was opened and saved")
        given = example(tool.args_schema)
        form = client.get(trial).context["form"]
        arguments = {
            field.html_name: typed(value, field.field)
            for field in form
            if (value := value_at(given, form.paths[field.name])) is not None
        }
        asked = client.post(trial, {**arguments, "show": "1"})
        context = asked.context or {}
        if text := context.get("asked"):
            requests.append(text.replace("\n", "\n    "))
        else:
            why = context.get("refused") or context["form"].errors.as_text()
            faults.append(f"{tool.name} cannot be tried: {why}")
    return requests, faults


def example(part: Any) -> Any:
    """Return some value for a schema, near enough to be sent."""
    if not isinstance(part, dict):
        return "x"
    for key in ("anyOf", "oneOf", "allOf"):
        if part.get(key):
            return example(part[key][0])
    if isinstance(part.get("enum"), list):
        return part["enum"][0]
    if part.get("default") is not None:
        return part["default"]
    kind = part.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "array":
        return [example(part.get("items"))]
    if kind == "object" or "properties" in part:
        listed = dict(part.get("properties") or {})
        if FILE_PROPERTIES.keys() == listed.keys():
            del listed["base64"]  # a file has one of both
        return {name: example(one) for name, one in listed.items()}
    values = {"integer": 7, "number": 1.5, "boolean": True, "null": None}
    return values.get(str(kind), "x y/z")


def value_at(given: Any, path: Iterable[str]) -> Any:
    """Return a value within nested objects, None if it is not there."""
    for name in path:
        given = given.get(name) if isinstance(given, dict) else None
    return given


def typed(value: Any, field: Any) -> str:
    """Return a value as a person types it into a field."""
    if isinstance(value, bool):
        return "Yes" if value else "No"
    is_json = isinstance(field, forms.JSONField)
    return value if isinstance(value, str) and not is_json else json.dumps(value)


def line_of(path: Path, tried: Tried) -> str:
    """Return one line of the table."""
    size = path.stat().st_size / 1e6
    kind = f"{tried.version} {path.suffix[1:].upper()}, {size:.2f} MB"
    most = tried.refused.most_common(4)
    reasons = "; ".join(f"{count}: {why}" for why, count in most)
    cells = [path.stem, kind, tried.operations, tried.taken, *tried.seconds]
    return "| " + " | ".join(map(str, [*cells, tried.megabytes, reasons])) + " |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
