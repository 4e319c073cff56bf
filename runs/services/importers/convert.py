"""A file of another product as an agent file that can be reviewed and imported."""

from collections import defaultdict
from dataclasses import replace
from pathlib import PurePath
from typing import NamedTuple

from django.contrib.auth.models import User
from django.utils.translation import gettext as _
from pydantic import ValidationError

from runs.models import Agent, PromptTemplate
from runs.services.agentfile.load import find_different_rows
from runs.services.agentfile.schema import AgentFile
from runs.services.agentfile.text import OWN_MARK, build_field_errors, render_agentfile
from runs.services.importers.build import AgentFileBuilder, TakenSlug
from runs.services.importers.conversion import Conversion, SkippedPart
from runs.services.importers.document import ForeignDocument, parse_foreign_document
from runs.services.importers.errors import ForeignFileRefused
from runs.services.importers.registry import find_importer

MAX_AGENTS = 200
MAX_ATTEMPTS = 10
"""After so many definitions with one name, all slugs are new."""


class ForeignImport(NamedTuple):
    """What a file of another product becomes here."""

    product: str
    text: str
    """An agent file."""
    file: AgentFile
    skipped: tuple[SkippedPart, ...]

    @property
    def parts_by_reason(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for part, reason in self.skipped:
            found[reason].append(part)
        return dict(found)


def convert_foreign_file(
    text: str, owner: User, *, name: str = ""
) -> ForeignImport | None:
    """Convert a file of another product for `owner`; None if it looks like our own.

    `name` is that of the file. Nothing is stored. Raise `ForeignFileRefused`.
    """
    document = find_foreign_document(text, name)
    if document is None:
        return None
    importer = find_importer(document)
    conversion = importer.convert(document)
    if len(conversion.agents) > MAX_AGENTS:
        raise ForeignFileRefused(
            _("The file has more than %(limit)s agents.") % {"limit": MAX_AGENTS}
        )
    try:
        builder, file = build_new_file(conversion, owner)
    except ValidationError as error:
        place, message = build_field_errors(error)[0]
        raise ForeignFileRefused(
            _("The file cannot be converted: %(place)s: %(problem)s")
            % {"place": place, "problem": message}
        ) from None
    skipped = tuple(dict.fromkeys([*conversion.skipped, *builder.skipped]))
    return ForeignImport(importer.title, render_agentfile(file), file, skipped)


class BuiltFile(NamedTuple):
    """An agent file, and its builder with what was left out."""

    builder: AgentFileBuilder
    file: AgentFile


def build_new_file(conversion: Conversion, owner: User) -> BuiltFile:
    """Build an agent file that can be imported beside what `owner` has already.

    A definition that differs from an own one of the same slug gets another slug, and
    one that is equal keeps it: importing the same file again changes nothing.
    """
    taken: set[TakenSlug] = set()
    for attempt in range(MAX_ATTEMPTS):
        builder = AgentFileBuilder(
            owner, taken=set(taken), reuses_own=attempt < MAX_ATTEMPTS - 1
        )
        file = builder.build_file(conversion)
        different = find_different_rows(file, owner)
        if not different:
            break
        taken.update((type(row), row.slug) for row in different)
        taken.update(
            (Agent, one.slug)
            for one in file.agents
            if (PromptTemplate, one.prompt) in taken
        )
    return BuiltFile(builder, file)


def find_foreign_document(text: str, name: str) -> ForeignDocument | None:
    """Return the parsed file, or None if the parser of agent files explains it better.

    Those are agent files, also with errors, and what is not an object at all.
    """
    if OWN_MARK.search(text):
        return None
    document = parse_foreign_document(text, PurePath(name).stem)
    data = document.data
    if isinstance(data, list) and len(data) == 1:  # n8n exports lists of workflows
        data = data[0]
        document = replace(document, data=data)
    if document.is_code or isinstance(data, list):
        return document
    return document if isinstance(data, dict) and "agentfile" not in data else None
