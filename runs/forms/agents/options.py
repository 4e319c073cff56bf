"""The fields of an agent's limits and options, which are not columns of their own."""

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.engine.kinds.registry import OUTPUT_PARSERS, PARSING_ERROR_HANDLERS
from runs.engine.types import Budget, ExecutorOptions, LoopGuard
from runs.forms.json_object import dump_json_object

OPTION_OF_FIELD = {
    "max_iterations": "max_iterations",
    "max_execution_time": "max_execution_time",
    "max_concurrent_runs": "max_concurrent_runs",
    "budget_tokens": "budget",
    "budget_cost": "budget",
    "early_stopping_method": "early_stopping_method",
    "parsing": "handle_parsing_errors",
    "parsing_text": "handle_parsing_errors",
    "trim_intermediate_steps": "trim_intermediate_steps",
    "context_tokens": "context_tokens",
    "context_method": "context_method",
    "output_schema": "output_schema",
    "loop_guard": "loop_guard",
    "output_parser": "output_parser",
    "parsing_error_handler": "parsing_error_handler",
}
"""Field of `ExecutorOptions` for each field of the form."""


def add_option_fields(form: forms.BaseForm, stored: ExecutorOptions) -> None:
    form.fields.update(build_option_fields())
    form.fields.update(build_extension_fields(stored))
    form.initial.update(get_option_values(stored))


def build_option_fields() -> dict[str, forms.Field]:
    guard = LoopGuard()
    return {
        "max_iterations": forms.IntegerField(
            required=False, min_value=1, label=gettext_lazy("Rounds")
        ),
        "max_execution_time": forms.FloatField(
            required=False, label=gettext_lazy("Working time")
        ),
        "max_concurrent_runs": forms.IntegerField(
            required=False,
            label=gettext_lazy("Runs at once"),
            help_text=gettext_lazy(
                "Additional runs of the agent wait until one ends. Leave empty "
                "for no limit."
            ),
        ),
        "budget_tokens": forms.IntegerField(
            required=False, label=gettext_lazy("Tokens")
        ),
        "budget_cost": forms.FloatField(required=False, label=gettext_lazy("Cost")),
        "early_stopping_method": forms.ChoiceField(
            choices=[
                ("force", gettext_lazy("End immediately and keep the steps")),
                ("generate", gettext_lazy("Request a final answer from the model")),
            ],
            label=gettext_lazy("When a limit is reached"),
        ),
        "parsing": forms.ChoiceField(
            choices=[
                ("tell", gettext_lazy("Send the error to the model")),
                ("say", gettext_lazy("Send a custom message to the model")),
                ("fail", gettext_lazy("Fail the run")),
            ],
            label=gettext_lazy("When a reply cannot be parsed"),
        ),
        "parsing_text": forms.CharField(
            required=False, label=gettext_lazy("Custom message")
        ),
        "trim_intermediate_steps": forms.IntegerField(
            required=False,
            label=gettext_lazy("Rounds sent to the model"),
            help_text=gettext_lazy(
                "Only the latest rounds. Leave empty to send all of them."
            ),
        ),
        "context_tokens": forms.IntegerField(
            required=False,
            label=gettext_lazy("Max request tokens"),
            help_text=gettext_lazy(
                "Estimated; the oldest rounds are dropped first. Leave empty for no "
                "limit."
            ),
        ),
        "context_method": forms.ChoiceField(
            required=False,
            choices=[
                ("drop", gettext_lazy("Drop the oldest rounds")),
                ("summary", gettext_lazy("Summarize the oldest rounds")),
            ],
            label=gettext_lazy("When a request is too long"),
        ),
        "output_schema": forms.CharField(
            required=False,
            label=gettext_lazy("JSON Schema of the answer"),
            widget=forms.Textarea(
                attrs={"rows": 3, "class": "mono", "spellcheck": "false"}
            ),
            help_text=gettext_lazy(
                "An answer that does not match is returned to the model with the "
                "errors. Leave empty for text answers."
            ),
        ),
        "loop_guard": forms.BooleanField(
            required=False,
            label=gettext_lazy("Stop repeated rounds"),
            help_text=_(
                "After %(hint)s identical rounds the model is warned, after %(stop)s "
                "the run ends."
            )
            % {"hint": guard.hint, "stop": guard.stop},
        ),
    }


def build_extension_fields(stored: ExecutorOptions) -> dict[str, forms.Field]:
    """Return fields to select what extensions have registered; none without any."""
    found: dict[str, forms.Field] = {}
    if names := list_extension_names(OUTPUT_PARSERS, stored.output_parser):
        found["output_parser"] = forms.ChoiceField(
            required=False,
            choices=[("", _("The parser of the kind")), *names],
            label=gettext_lazy("Output parser"),
        )
    if names := list_extension_names(
        PARSING_ERROR_HANDLERS, stored.parsing_error_handler
    ):
        found["parsing_error_handler"] = forms.ChoiceField(
            required=False,
            choices=[("", _("None")), *names],
            label=gettext_lazy("Parsing-error handler"),
            help_text=gettext_lazy("Writes the error that is sent to the model."),
        )
    return found


def list_extension_names(
    registered: Iterable[str], stored: str | None
) -> list[tuple[str, str]]:
    """Return the names as choices; a stored one stays, even if it is gone."""
    found = [(name, name) for name in sorted(registered)]
    if stored and stored not in dict(found):
        found.append((stored, _("%(name)s (not registered)") % {"name": stored}))
    return found


def get_option_values(options: ExecutorOptions) -> dict[str, Any]:
    """Return the value of each field; for the default options, those of a new agent."""
    budget = options.budget or Budget()
    parsing = options.handle_parsing_errors
    trim = options.trim_intermediate_steps
    return {
        "max_iterations": options.max_iterations,
        "max_execution_time": options.max_execution_time,
        "max_concurrent_runs": options.max_concurrent_runs,
        "budget_tokens": budget.tokens,
        "budget_cost": budget.cost,
        "early_stopping_method": options.early_stopping_method,
        "parsing": "say" if isinstance(parsing, str) else "tell" if parsing else "fail",
        "parsing_text": parsing if isinstance(parsing, str) else "",
        "trim_intermediate_steps": trim if trim >= 0 else None,
        "context_tokens": options.context_tokens,
        "context_method": options.context_method,
        "output_schema": dump_json_object(options.output_schema),
        "loop_guard": options.loop_guard is not None,
        "output_parser": options.output_parser or "",
        "parsing_error_handler": options.parsing_error_handler or "",
    }


def change_options(
    stored: ExecutorOptions, given: Mapping[str, Any], *, keep: Iterable[str]
) -> ExecutorOptions:
    """Return `stored` with the cleaned values, except of the fields in `keep`."""
    tokens, cost = given.get("budget_tokens"), given.get("budget_cost")
    trim, schema = given.get("trim_intermediate_steps"), given.get("output_schema")
    parsing = {"tell": True, "fail": False}.get(given.get("parsing", "tell"))
    guard = (stored.loop_guard or LoopGuard()) if given.get("loop_guard") else None
    update = {
        "max_iterations": given.get("max_iterations"),
        "max_execution_time": given.get("max_execution_time"),
        "max_concurrent_runs": given.get("max_concurrent_runs"),
        "budget": None
        if tokens is None and cost is None
        else Budget(tokens=tokens, cost=cost),
        "early_stopping_method": given.get("early_stopping_method", "force"),
        "handle_parsing_errors": given.get("parsing_text", "")
        if parsing is None
        else parsing,
        "trim_intermediate_steps": -1 if trim is None else trim,
        "context_tokens": given.get("context_tokens"),
        "context_method": given.get("context_method") or "drop",
        "output_schema": schema if isinstance(schema, dict) else None,
        "loop_guard": guard,
        "output_parser": given.get("output_parser") or None,
        "parsing_error_handler": given.get("parsing_error_handler") or None,
    }
    for name in keep:
        update.pop(OPTION_OF_FIELD.get(name, ""), None)
    return stored.model_copy(update=update)
