"""LangChain: prompts of the hub, in the older and the current format."""

import re
from typing import Any

from django.utils.translation import gettext as _

from runs.engine.prompts import ENGINE_VARIABLES
from runs.engine.types import PromptMessage
from runs.services.importers.conversion import Conversion, ConvertedPrompt, SkippedPart
from runs.services.importers.document import ForeignDocument
from runs.services.importers.errors import ForeignFileRefused
from runs.services.importers.skipped import skip_setting
from runs.services.importers.templates import (
    DOUBLE_BRACES,
    SINGLE_BRACES,
    convert_template,
)
from runs.services.importers.values import (
    as_dict,
    as_list,
    as_text,
    get_path,
    iter_dicts,
)

ROLES = {
    "SystemMessagePromptTemplate": "system",
    "HumanMessagePromptTemplate": "user",
    "AIMessagePromptTemplate": "assistant",
    "SystemMessage": "system",
    "HumanMessage": "user",
    "AIMessage": "assistant",
}
SYNTAXES = {"f-string": SINGLE_BRACES, "mustache": DOUBLE_BRACES}
HISTORY = ("chat_history", "history", "agent_scratchpad", "messages")
"""Placeholders of messages that the engine adds by itself."""


def recognize_langchain(document: ForeignDocument) -> bool:
    fields = document.fields
    if fields.get("lc") == 1:
        return True
    kind = fields.get("_type")
    return isinstance(kind, str) or {"input_variables", "template"} <= set(fields)


def convert_langchain(document: ForeignDocument) -> Conversion:
    """Convert a prompt; raise `ForeignFileRefused` for chains and agents."""
    fields = document.fields
    skipped: list[SkippedPart] = []
    if fields.get("lc") == 1:
        messages, name = convert_serialized(fields, skipped)
    else:
        messages, name = convert_plain(fields, skipped), ""
    if not messages:
        raise ForeignFileRefused(
            _("The messages of this LangChain prompt are only placeholders.")
        )
    if get_path(fields, "output_parser") is not None:
        skipped.append(skip_setting("output_parser"))
    prompt = ConvertedPrompt(
        name=name or document.name or _("LangChain prompt"), messages=messages
    )
    return Conversion(prompts=(prompt,), skipped=tuple(skipped))


def convert_plain(
    fields: dict[str, Any], skipped: list[SkippedPart]
) -> tuple[PromptMessage, ...]:
    """Return the message of a prompt in the format of the first hub."""
    kind = as_text(fields.get("_type")) or "prompt"
    if kind not in ("prompt", "few_shot"):
        raise ForeignFileRefused(
            _(
                "This is a LangChain file of the type “%(kind)s”; only prompts can be "
                "imported."
            )
            % {"kind": kind[:60]}
        )
    if kind == "few_shot" or "template" not in fields:
        raise ForeignFileRefused(
            _(
                "This LangChain prompt reads its text or examples from other files; "
                "only prompts in one file can be imported."
            )
        )
    return (convert_message("user", fields, skipped),)


def convert_serialized(
    fields: dict[str, Any], skipped: list[SkippedPart]
) -> tuple[tuple[PromptMessage, ...], str]:
    """Return the messages of a serialized prompt, and its name in the hub."""
    kind = get_serialized_class(fields)
    given = as_dict(fields.get("kwargs"))
    if kind == "RunnableSequence":  # a prompt that was saved with its model
        skipped.append(skip_setting("model", reason=_("Only the prompt is imported.")))
        first = as_dict(given.get("first"))
        return convert_serialized(first, skipped) if first.get("lc") == 1 else ((), "")
    name = as_text(get_path(given, "metadata", "lc_hub_repo"))
    if kind == "PromptTemplate":
        return (convert_message("user", given, skipped),), name
    if kind not in ("ChatPromptTemplate", "StructuredPrompt"):
        raise ForeignFileRefused(
            _(
                "This is a LangChain file of the type “%(kind)s”; only prompts can be "
                "imported."
            )
            % {"kind": kind[:60]}
        )
    for partial in as_dict(given.get("partial_variables")):
        skipped.append(skip_setting(f"partial_variables: {partial}"))
    if given.get("schema_") or given.get("schema"):
        reason = _("Enter the schema as the output of the agent.")
        skipped.append(skip_setting("schema", reason=reason))
    found = [convert_part(one, skipped) for one in iter_dicts(given.get("messages"))]
    return tuple(one for one in found if one is not None), name


def convert_part(
    part: dict[str, Any], skipped: list[SkippedPart]
) -> PromptMessage | None:
    """Return a message of a chat prompt; a placeholder for others is not a message."""
    kind, given = get_serialized_class(part), as_dict(part.get("kwargs"))
    if kind == "MessagesPlaceholder":
        name = as_text(given.get("variable_name"))
        if name not in HISTORY:
            reason = _("A variable holds one text here, not a list of messages.")
            skipped.append(skip_setting(f"MessagesPlaceholder: {name}", reason=reason))
        return None
    if kind not in ROLES:
        skipped.append(skip_setting(kind or "?"))
        return None
    prompt = given.get("prompt")
    if isinstance(prompt, list):  # texts and images
        texts = [
            one
            for one in iter_dicts(prompt)
            if get_serialized_class(one) == "PromptTemplate"
        ]
        if len(texts) < len(prompt):
            skipped.append(
                skip_setting("image_url", reason=_("Prompts are texts here."))
            )
        prompt = texts[0] if texts else None
    inner = as_dict(get_path(prompt, "kwargs"))
    if not inner:  # a message without variables
        inner = {"template": given.get("content"), "template_format": ""}
    return convert_message(ROLES[kind], inner, skipped)


def get_serialized_class(value: dict[str, Any]) -> str:
    """Return the last part of a serialized object's id, its class."""
    return as_text(next(iter(as_list(value.get("id"))[-1:]), ""))


NO_VARIABLES = re.compile(r"(?!)()")


def convert_message(
    role: str, given: dict[str, Any], skipped: list[SkippedPart]
) -> PromptMessage:
    syntax = as_text(given.get("template_format", "f-string"))
    if syntax and syntax not in SYNTAXES:
        raise ForeignFileRefused(
            _(
                "The prompt uses the syntax “%(syntax)s”; f-string and mustache can be "
                "imported."
            )
            % {"syntax": syntax[:40]}
        )
    pattern = SYNTAXES.get(syntax, NO_VARIABLES)
    template = convert_template(
        as_text(given.get("template")), pattern, name_prompt_variable
    )
    skipped += [
        skip_setting(f"{{{said}}}", reason=_("The engine adds the steps and tools."))
        for name, said in template.expressions.items()
        if name in ENGINE_VARIABLES
    ]
    return PromptMessage.model_validate({"role": role, "template": template.text})


def name_prompt_variable(expression: str) -> str:
    """Return a variable's name; those that the engine fills in keep theirs."""
    return re.sub(r"[^A-Za-z0-9_]+", "_", expression).strip("_") or "value"
