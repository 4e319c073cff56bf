"""Agent files of a folder as one import: a plan first, then all of it or nothing."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from django.contrib.auth.models import User

from runs.models import Agent
from runs.services.agentfile.load import ImportResult, store_agentfile
from runs.services.agentfile.schema import AgentFile
from runs.services.agentfile.text import (
    MAX_FILE_CHARS,
    OWN_MARK,
    AgentFileRefused,
    parse_agentfile,
)
from runs.services.errors import FieldError, RunsError

ENDINGS = (".yaml", ".yml", ".json")
MAX_FILES = 500
KINDS = ("providers", "prompts", "tools", "datasets", "evaluators", "agents")


class NoAgentFiles(RunsError):
    """A folder has no agent files, or too many."""


class SourceFile(NamedTuple):
    name: str
    """Its path below the folder."""
    file: AgentFile


class SyncResult(NamedTuple):
    """What a synchronization changes, and what it leaves alone."""

    files: tuple[str, ...]
    done: ImportResult
    only_here: tuple[str, ...]
    """Slugs of the owner's agents that are in no file; they are not changed."""


def sync_agentfiles(
    folder: Path, owner: User, *, draft: bool = False, dry_run: bool = False
) -> SyncResult:
    """Create and update what the files of `folder` define, all of it or nothing.

    Files may refer to definitions of one another. A dry run is the plan. Raise
    `NoAgentFiles` or `AgentFileRefused`, whose errors begin with the file.
    """
    sources = load_source_files(folder)
    merged = merge_sources(sources)
    try:
        done = store_agentfile(merged, owner, draft=draft, dry_run=dry_run)
    except AgentFileRefused as refused:
        errors = [locate_error(error, sources) for error in refused.errors]
        raise AgentFileRefused(errors) from None
    slugs = [one.slug for one in merged.agents]
    own = Agent.objects.filter(owner=owner, archived_at=None, is_playground=False)
    only_here = own.exclude(slug__in=slugs).order_by("slug")
    return SyncResult(
        files=tuple(one.name for one in sources),
        done=done,
        only_here=tuple(only_here.values_list("slug", flat=True)),
    )


def load_source_files(folder: Path) -> list[SourceFile]:
    """Return the agent files at and below `folder`; other files are left out."""
    sources: list[SourceFile] = []
    errors: list[FieldError] = []
    for path in iter_paths(folder):
        name = path.relative_to(folder).as_posix()
        try:
            text = read_source_text(path)
            if OWN_MARK.search(text):
                sources.append(SourceFile(name, parse_agentfile(text)))
        except AgentFileRefused as refused:
            errors += [
                FieldError(f"{name}: {error.field}", error.message)
                for error in refused.errors
            ]
        if len(sources) > MAX_FILES:
            raise NoAgentFiles(f"{folder} has more than {MAX_FILES} agent files.")
    if errors:
        raise AgentFileRefused(errors)
    if not sources:
        raise NoAgentFiles(
            f"{folder} has no agent files. They end in {', '.join(ENDINGS)} and have "
            "the field `agentfile: 1`."
        )
    return sources


def iter_paths(folder: Path) -> Iterator[Path]:
    """Yield files with the endings of agent files, sorted, without hidden ones.

    Links out of the folder are not followed.
    """
    root = folder.resolve()
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if path.suffix.lower() not in ENDINGS or any(p.startswith(".") for p in parts):
            continue
        if path.is_file() and path.resolve().is_relative_to(root):
            yield path


def read_source_text(path: Path) -> str:
    """Return the text of a file; one that is too long is refused while parsing."""
    with path.open("rb") as source:
        raw = source.read(4 * MAX_FILE_CHARS + 1)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        if len(raw) > 4 * MAX_FILE_CHARS:  # cut off within a character
            return raw.decode("utf-8-sig", "replace")
        message = "The file is not UTF-8 text."
        raise AgentFileRefused([FieldError("file", message)]) from None


def merge_sources(sources: list[SourceFile]) -> AgentFile:
    found: dict[str, Any] = {
        kind: tuple(entry for one in sources for entry in getattr(one.file, kind))
        for kind in KINDS
    }
    return AgentFile(agentfile=1, **found)


def locate_error(error: FieldError, sources: list[SourceFile]) -> FieldError:
    """Return the error with its file, and the place in that file."""
    kind, bracket, rest = error.field.partition("[")
    number, _, after = rest.partition("]")
    if kind not in KINDS or not bracket or not number.isdecimal():
        return error
    index = int(number)
    for one in sources:
        count = len(getattr(one.file, kind))
        if index < count:
            place = f"{one.name}: {kind}[{index}]{after}"
            return FieldError(place, error.message)
        index -= count
    return error
