"""Converting real files of other products, a table line for each folder.

`AGENTSITE_DATA=FOLDER python -m tests.services.importers.try_files FOLDER …` in a
database of its own: each file is converted, and the result is imported in a dry run.
Below the table are the reasons of what was refused or not imported, and how often.
"""

import argparse
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple


class Tried(NamedTuple):
    """What became of the files of one folder."""

    counts: Counter[str]
    refused: Counter[str]
    reasons: Counter[str]


def main(given: list[str]) -> int:
    """Print the table; return 1 if a result could not be imported."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    options = parser.parse_args(given)
    owner = start_django()
    columns = ("files", "converted", "agents", "prompts", "tools", "not imported")
    say(f"| folder | {' | '.join(columns)} |")
    say("|---" * (len(columns) + 1) + "|")
    tried = {folder: try_folder(folder, owner) for folder in options.folders}
    for folder, one in tried.items():
        values = " | ".join(str(one.counts[column]) for column in columns)
        say(f"| {folder.name} | {values} |")
    for folder, one in tried.items():
        say(f"\n{folder.name}")
        for word, found in (("refused", one.refused), ("not imported", one.reasons)):
            for reason, count in found.most_common():
                say(f"  {count:5} {word}: {reason}")
    return int(any(one.counts["broken"] for one in tried.values()))


def start_django() -> Any:
    """Set up a database with one user and one provider; return the user."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings")
    import django  # noqa: PLC0415  # needs the settings

    django.setup()
    from django.contrib.auth.models import User  # noqa: PLC0415
    from django.core.management import call_command  # noqa: PLC0415

    from runs.models import Provider  # noqa: PLC0415

    call_command("migrate", verbosity=0)
    owner, _ = User.objects.get_or_create(username="importer", is_superuser=True)
    given = {"owner": owner, "name": "Local", "default_model": "m"}
    address = "http://127.0.0.1:8080/v1"
    Provider.objects.get_or_create(
        slug="local", defaults={**given, "base_url": address}
    )
    return owner


def try_folder(folder: Path, owner: Any) -> Tried:
    """Convert each file of a folder; nothing is stored."""
    from runs.services.agentfile.load import import_agentfile  # noqa: PLC0415
    from runs.services.agentfile.text import AgentFileRefused  # noqa: PLC0415
    from runs.services.importers.convert import (  # noqa: PLC0415
        convert_foreign_file,
    )
    from runs.services.importers.errors import ForeignFileRefused  # noqa: PLC0415

    found = Tried(Counter(), Counter(), Counter())
    for path in sorted(one for one in folder.iterdir() if one.is_file()):
        found.counts["files"] += 1
        try:
            text = path.read_text(encoding="utf-8-sig")
            done = convert_foreign_file(text, owner, name=path.name)
            if done is None:
                found.refused["no object at the top level"] += 1
                continue
            import_agentfile(done.text, owner, inert=True, dry_run=True)
        except (ForeignFileRefused, UnicodeDecodeError) as error:
            found.refused[str(error)] += 1
            continue
        except AgentFileRefused as error:
            found.counts["broken"] += 1
            found.refused[f"BROKEN {path.name}: {error}"] += 1
            continue
        found.counts["converted"] += 1
        found.counts["agents"] += len(done.file.agents)
        found.counts["prompts"] += len(done.file.prompts) - len(done.file.agents)
        found.counts["tools"] += len(done.file.tools)
        found.counts["not imported"] += len(done.skipped)
        found.reasons.update(reason for _, reason in done.skipped)
    return found


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
