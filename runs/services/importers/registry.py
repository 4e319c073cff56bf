"""All importers, and which of them a file is for."""

from collections.abc import Callable
from typing import NamedTuple

from django.utils.translation import gettext as _

from runs.services.importers.conversion import Conversion
from runs.services.importers.document import ForeignDocument
from runs.services.importers.errors import ForeignFileRefused
from runs.services.importers.formats.agent_builder import (
    convert_agent_builder,
    recognize_agent_builder,
)
from runs.services.importers.formats.autogen import convert_autogen, recognize_autogen
from runs.services.importers.formats.crewai import convert_crewai, recognize_crewai
from runs.services.importers.formats.dify import convert_dify, recognize_dify
from runs.services.importers.formats.flowise import convert_flowise, recognize_flowise
from runs.services.importers.formats.langchain import (
    convert_langchain,
    recognize_langchain,
)
from runs.services.importers.formats.langflow import (
    convert_langflow,
    recognize_langflow,
)
from runs.services.importers.formats.n8n import convert_n8n, recognize_n8n
from runs.services.importers.formats.other_formats import OTHER_FORMATS


class Importer(NamedTuple):
    title: str
    recognizes: Callable[[ForeignDocument], bool]
    """Whether a file is of this product, whatever can be imported of it."""
    convert: Callable[[ForeignDocument], Conversion]
    """Raises `ForeignFileRefused`."""


IMPORTERS = (
    Importer("Dify", recognize_dify, convert_dify),
    Importer("n8n", recognize_n8n, convert_n8n),
    Importer("Langflow", recognize_langflow, convert_langflow),
    Importer("Flowise", recognize_flowise, convert_flowise),
    Importer("AutoGen Studio", recognize_autogen, convert_autogen),
    Importer("CrewAI", recognize_crewai, convert_crewai),
    Importer("LangChain", recognize_langchain, convert_langchain),
    Importer("OpenAI Agent Builder", recognize_agent_builder, convert_agent_builder),
)


def find_importer(document: ForeignDocument) -> Importer:
    """Return the importer of a file; raise `ForeignFileRefused` if there is none."""
    for importer in IMPORTERS:
        if importer.recognizes(document):
            return importer
    for other in OTHER_FORMATS:
        if other.recognizes(document):
            raise ForeignFileRefused(str(other.message))
    raise ForeignFileRefused(
        _("The file is neither an agent file nor a file of %(products)s.")
        % {"products": ", ".join(importer.title for importer in IMPORTERS)}
    )
