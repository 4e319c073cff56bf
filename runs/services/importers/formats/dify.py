"""Dify: agent and chat apps of a DSL file."""

import re
from typing import Any

from django.utils.translation import gettext as _

from runs.engine.spec_validation import MAX_ROUNDS
from runs.engine.types import PromptMessage
from runs.models.agents import MAX_SUGGESTED_QUESTION_LENGTH, MAX_SUGGESTED_QUESTIONS
from runs.services.importers.conversion import (
    Conversion,
    ConvertedAgent,
    ConvertedModel,
    ConvertedTool,
    SkippedPart,
)
from runs.services.importers.document import ForeignDocument
from runs.services.importers.errors import ForeignFileRefused
from runs.services.importers.known_tools import find_known_tool
from runs.services.importers.skipped import (
    explain_disabled,
    explain_expression,
    explain_mcp,
    explain_openapi,
    skip_knowledge,
    skip_setting,
    skip_tool,
)
from runs.services.importers.templates import (
    INPUT_MESSAGE,
    build_variable_name,
    convert_template,
)
from runs.services.importers.values import (
    as_dict,
    as_list,
    as_text,
    get_path,
    iter_dicts,
    pick_iterations,
    pick_parameters,
)

VARIABLE = re.compile(r"\{\{\s*(#?[A-Za-z_][A-Za-z0-9_]{0,99}#?)\s*\}\}")
"""`{{name}}`; Dify itself fills in `{{#context#}}`, `{{#query#}}` and others."""
TITLES = {
    "agent-chat": "agent app",
    "chat": "chat app",
    "advanced-chat": "chatflow",
    "workflow": "workflow",
    "completion": "text generator",
    "rag-pipeline": "knowledge pipeline",
}
"""In Dify's own words, by mode."""
FEATURES = (
    "annotation_reply",
    "more_like_this",
    "sensitive_word_avoidance",
    "speech_to_text",
    "text_to_speech",
    "suggested_questions_after_answer",
)
"""Objects with `enabled`."""


def recognize_dify(document: ForeignDocument) -> bool:
    fields = document.fields
    mode = get_path(fields, "app", "mode")
    return (
        isinstance(mode, str)
        and (
            "model_config" in fields
            or "workflow" in fields
            or fields.get("kind") == "app"
        )
        or fields.get("kind") == "rag_pipeline"
    )


def convert_dify(document: ForeignDocument) -> Conversion:
    """Convert an agent or chat app; raise `ForeignFileRefused` for other modes."""
    app = as_dict(document.fields.get("app"))
    config = document.fields.get("model_config")
    mode = as_text(app.get("mode")) or "rag-pipeline"
    if mode not in ("agent-chat", "chat"):
        raise ForeignFileRefused(
            _("This is a Dify %(kind)s; only agent apps and chat apps can be imported.")
            % {"kind": TITLES.get(mode, mode[:40])}
        )
    if not isinstance(config, dict):
        raise ForeignFileRefused(
            _("This Dify file has no `model_config`. Export the app again.")
        )
    tools, skipped = convert_dify_tools(config)
    messages, unfilled = convert_dify_prompt(config)
    questions = [as_text(one) for one in as_list(config.get("suggested_questions"))]
    kept = tuple(question for question in questions if is_question(question))[
        :MAX_SUGGESTED_QUESTIONS
    ]
    model = as_dict(config.get("model"))
    agent = ConvertedAgent(
        key="app",
        name=as_text(app.get("name")),
        description=as_text(app.get("description")),
        messages=messages,
        model=ConvertedModel(
            provider=as_text(model.get("provider")),
            model=as_text(model.get("name")),
            parameters=pick_parameters(model.get("completion_params")),
        ),
        tools=tools,
        executor=pick_iterations(
            get_path(config, "agent_mode", "max_iteration"), MAX_ROUNDS
        ),
        suggested_questions=kept,
        memory=True,
    )
    skipped += unfilled + list_settings(config)
    if len(kept) < len([one for one in questions if one.strip()]):
        reason = _("At most %(count)s questions of %(length)s characters are shown.")
        limits = {
            "count": MAX_SUGGESTED_QUESTIONS,
            "length": MAX_SUGGESTED_QUESTION_LENGTH,
        }
        skipped.append(skip_setting("suggested_questions", reason=reason % limits))
    return Conversion(agents=(agent,), skipped=tuple(skipped))


def is_question(text: str) -> bool:
    return len(text.strip()) > 0 and len(text) <= MAX_SUGGESTED_QUESTION_LENGTH


def convert_dify_tools(
    config: dict[str, Any],
) -> tuple[tuple[ConvertedTool, ...], list[SkippedPart]]:
    found: list[ConvertedTool] = []
    skipped: list[SkippedPart] = []
    mode = as_dict(config.get("agent_mode"))
    for tool in iter_dicts(mode.get("tools")):
        name = as_text(tool.get("tool_label")) or as_text(tool.get("tool_name"))
        provider = as_text(tool.get("provider_name") or tool.get("provider_id"))
        if "tool_name" not in tool:  # the first DSL had `{"dataset": {...}}`
            skipped.append(skip_knowledge(get_path(tool, "dataset", "id") or "?"))
        elif tool.get("enabled") is False:
            skipped.append(skip_tool(name, provider, reason=explain_disabled()))
        elif known := find_known_tool(as_text(tool.get("tool_name"))):
            found.append(known)
        else:
            reason = explain_provider(as_text(tool.get("provider_type")), provider)
            skipped.append(skip_tool(name, provider, reason=reason))
    return tuple(found), skipped


def explain_provider(kind: str, name: str) -> str:
    """Return how to add the tools of a provider; empty if no general way exists."""
    if kind == "mcp":
        return explain_mcp(name)
    return explain_openapi() if kind == "api" else ""


def convert_dify_prompt(
    config: dict[str, Any],
) -> tuple[tuple[PromptMessage, ...], list[SkippedPart]]:
    """Return the messages, and what Dify fills in but nothing here does."""
    given = [("system", as_text(config.get("pre_prompt")))]
    if config.get("prompt_type") == "advanced":
        given = [
            (as_text(one.get("role")), as_text(one.get("text")))
            for one in iter_dicts(get_path(config, "chat_prompt_config", "prompt"))
        ]
    messages: list[PromptMessage] = []
    skipped: list[SkippedPart] = []
    for role, text in given:
        if not text.strip():
            continue
        template = convert_template(text, VARIABLE, name_dify_variable)
        known = role if role in ("user", "assistant") else "system"
        messages.append(
            PromptMessage.model_validate({"role": known, "template": template.text})
        )
        skipped += [
            skip_setting(
                f"{{{{{expression}}}}}",
                reason=explain_expression(name),
            )
            for name, expression in template.expressions.items()
            if "#" in expression
        ]
    if not any(one.role == "user" for one in messages):
        messages.append(INPUT_MESSAGE)
    return tuple(messages), skipped


def name_dify_variable(expression: str) -> str:
    """Return our name of a variable; the question of a run is `input`."""
    if expression.strip("#") in ("query", "sys_query"):
        return "input"
    return build_variable_name(expression)


def list_settings(config: dict[str, Any]) -> list[SkippedPart]:
    """Return the settings that are on, or have a value, and have no counterpart."""
    skipped = [
        skip_setting(name)
        for name in FEATURES
        if get_path(config, name, "enabled") is True
    ]
    if as_text(config.get("opening_statement")).strip():
        skipped.append(skip_setting("opening_statement"))
    uploads = as_dict(config.get("file_upload"))
    if True in (uploads.get("enabled"), get_path(uploads, "image", "enabled")):
        skipped.append(skip_setting("file_upload"))
    for one in iter_dicts(config.get("external_data_tools")):
        skipped.append(skip_tool(one.get("label") or one.get("variable"), "API"))
    datasets = get_path(config, "dataset_configs", "datasets", "datasets")
    for one in iter_dicts(datasets):
        skipped.append(skip_knowledge(get_path(one, "dataset", "id") or one.get("id")))
    for field in iter_dicts(config.get("user_input_form")):
        skipped += list_form_field(field)
    if get_path(config, "agent_mode", "strategy") in ("react", "cot"):
        skipped.append(
            skip_setting(
                "strategy: react", reason=_("The agent uses function calling instead.")
            )
        )
    return skipped


def list_form_field(field: dict[str, Any]) -> list[SkippedPart]:
    """Return what an input field of the app loses: defaults, choices, files."""
    skipped = []
    for kind, options in field.items():
        options = as_dict(options)
        label = as_text(options.get("variable")) or as_text(options.get("label"))
        if kind not in ("text-input", "paragraph", "select", "number"):
            skipped.append(
                skip_setting(label, reason=_("Inputs of a run are texts and numbers."))
            )
        elif as_text(options.get("default")).strip():
            skipped.append(
                skip_setting(
                    f"{label}: default",
                    reason=_("Inputs have no default values here."),
                )
            )
        if as_list(options.get("options")):
            skipped.append(
                skip_setting(
                    f"{label}: options", reason=_("Any text can be entered here.")
                )
            )
    return skipped
