"""The test pane of a tool: what it shows before and after a call."""

import json
import re
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from secrets import token_hex
from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.forms import BoundField
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext

from tools.definition.freeze import freeze_tool
from tools.definition.save import serialize_definition
from tools.errors import ToolFailed
from tools.forms.arguments import ArgumentsForm
from tools.forms.arguments_json import JsonArgumentsForm
from tools.forms.python_tool import NO_RESULT
from tools.forms.tool import ToolForm
from tools.kinds.python import strip_error_line
from tools.kinds.python_function import is_result_missing
from tools.models import Tool
from tools.net.client_disconnect import watch_disconnect
from tools.services.show_request import show_request
from tools.services.try_tool import (
    MAX_SHOWN_TEXT,
    TRY_SECONDS,
    TryResult,
    try_tool,
)
from tools.spec import ToolSpec
from tools.text.storable import replace_unstorable
from tools.text.translatable import translate_text
from tools.typed_generics import StrOrPromise
from tools.ui.colored_json import render_colored_json
from tools.ui.labels import can_edit_tool
from tools.ui.timing_bar import TimingPhase, build_timing_bar
from tools.ui.trial_labels import REQUEST_LABELS, TRIAL_LABELS, TrialLabels
from tools.views.earlier_trials import EarlierTrial, LoadedTrial, list_trials
from tools.views.trial_arguments import (
    TrialArguments,
    mark_lost_secrets,
    open_typed_arguments,
)

TOOL_FORM_ID = "tool-form"
DRAFT_NAME = re.compile(r"[0-9a-f]{16}")
TYPED_ARGUMENTS = ("arg-", "arguments-")
"""How the names of the fields of arguments begin, as a form and as JSON."""
NO_CALL = frozenset({"refresh", "switch_to", "trial"})
"""Names of buttons that only change what the pane shows."""


class FormFlaw(NamedTuple):
    """A field of the tool's form that has errors."""

    field: BoundField
    errors: Iterable[object]

    @property
    def error_line(self) -> Any:
        """The line of the code that cannot be read; nothing for other fields."""
        return self.field.field.widget.attrs.get("data-error-line")


class CodeLine(NamedTuple):
    """A line of the code that led to an error."""

    number: int
    text: str
    """Empty for people who cannot see the code."""


@dataclass
class TrialPane:
    tool: Tool
    url: str
    """Where the call is requested."""
    arguments: TrialArguments
    words: TrialLabels
    seconds: int
    """Of a call at most."""
    effect: str
    retries: int
    """What a run adds to a failed call; a try never does."""
    flaws: list[FormFlaw] = field(default_factory=list)
    """Why the typed definition cannot be called."""
    confirmation: str = ""
    """What confirms a call with side effects; the button sends it."""
    must_confirm: bool = False
    is_confirmed: bool = False
    is_unsaved: bool = False
    shows_code: bool = False
    """Whether this person can see the definition."""
    result: TryResult | None = None
    is_previewed: bool = False
    """Whether the request is known."""
    request_text: str = ""
    refused: str = ""
    """Why no request can be built."""
    trials: list[EarlierTrial] = field(default_factory=list)
    note: str = ""
    """Why the arguments of an earlier call were not loaded."""
    draft: str = ""
    """Names the form of a tool that is not created yet."""
    joins_form: bool = False
    """Whether its fields and buttons belong to the form of the tool, to send both."""

    def join_form(self) -> None:
        """Let one request without a script send the arguments and the typed tool."""
        self.joins_form = True
        for one in self.arguments.fields.values():
            one.widget.attrs["form"] = TOOL_FORM_ID

    @property
    def submit_attributes(self) -> str:
        """What makes a button outside of the tool's form send it."""
        if not self.joins_form:
            return ""
        return format_html(
            'form="{}" formaction="{}" formenctype="multipart/form-data"',
            TOOL_FORM_ID,
            self.url,
        )

    @property
    def is_json(self) -> bool:
        return isinstance(self.arguments, JsonArgumentsForm)

    @property
    def can_switch(self) -> bool:
        """Whether the arguments can be typed as fields and as JSON."""
        return self.is_json or bool(getattr(self.arguments, "paths", None))

    @property
    def phases(self) -> list[TimingPhase]:
        if self.result is None:
            return []
        return build_timing_bar(self.result.exchange.phases, self.result.seconds)

    @property
    def whole_error(self) -> str:
        """The error; one of this page is translated, and those of calls are not."""
        return translate_text(self.result.error, gettext) if self.result else ""

    @property
    def whole_text(self) -> str:
        """What the model gets: the value, or the sentence of an error."""
        return (self.result.value_text or self.whole_error) if self.result else ""

    @property
    def model_text(self) -> str:
        """As much of it as the page shows."""
        return (self.result.shown_text or self.whole_error) if self.result else ""

    @property
    def shown_limit(self) -> int:
        """Characters that are shown of a longer result; 0 if all are shown."""
        return MAX_SHOWN_TEXT if self.result and self.result.is_cut else 0

    @property
    def opens_with_model_text(self) -> bool:
        """Whether no other tab of the result says more."""
        if self.result is None or self.result.error_line:
            return False
        has_value_tab = self.result.exchange.status or self.result.is_structured
        return not (self.result.ok and has_value_tab)

    @property
    def returned_text(self) -> str:
        """A returned list or object, with line breaks and colors."""
        return render_colored_json(self.model_text)

    @property
    def no_result(self) -> StrOrPromise:
        """Why the result of a call is empty, whatever its arguments."""
        if not (self.result and self.result.ok and self.shows_code):
            return ""
        is_missing = is_result_missing(str(self.tool.config.get("code", "")))
        return NO_RESULT if is_missing else ""

    @property
    def printed_lines(self) -> int:
        return len(self.result.printed.splitlines()) if self.result else 0

    @property
    def failed_lines(self) -> list[CodeLine]:
        """The lines of Python code where it failed, the outermost first."""
        if self.result is None or self.result.error_line is None:
            return []
        frame, last = self.result.frame, self.result.error_line
        code = str(self.tool.config.get("code", "")) if self.shows_code else ""
        lines = code.split("\n")
        numbers = dict.fromkeys([frame.line if frame else last, last])
        return [
            CodeLine(number, "".join(lines[number - 1 : number]).strip())
            for number in numbers
        ]

    @property
    def error_text(self) -> str:
        """What Python code raised, without its line."""
        return strip_error_line(self.result.error) if self.result else ""

    @property
    def body_text(self) -> str:
        """The body of the response, JSON with line breaks and colors."""
        return render_colored_json(self.result.exchange.body) if self.result else ""


def open_trial_pane(
    tool: Tool,
    *,
    url: str,
    user: User,
    values: Any = None,
    draft: str = "",
    loaded: LoadedTrial | None = None,
) -> TrialPane:
    """Return the pane of a definition before a call; `values` are its arguments.

    Those of an earlier call replace them.
    """
    spec = freeze_tool(tool)
    values = loaded.values if loaded else values
    arguments = ArgumentsForm(schema=spec.args_schema, values=values)
    pane = build_pane(tool, spec, url=url, user=user, arguments=arguments, draft=draft)
    show_loaded(pane, loaded)
    return pane


def read_draft(request: HttpRequest) -> str:
    """Return the name that the form of a new tool was given, or a new one."""
    given = request.POST.get("draft", "")
    return given if DRAFT_NAME.fullmatch(given) else token_hex(8)


def build_pane(
    tool: Tool,
    spec: ToolSpec,
    *,
    url: str,
    user: User,
    arguments: TrialArguments,
    draft: str = "",
) -> TrialPane:
    return TrialPane(
        tool=tool,
        url=url,
        arguments=arguments,
        words=TRIAL_LABELS.get(tool.kind, REQUEST_LABELS),
        seconds=max(1, int(min(TRY_SECONDS, spec.timeout))),
        effect=spec.effect,
        retries=spec.retries if spec.effect != "side_effect" else 0,
        confirmation=build_confirmation(spec) if spec.effect == "side_effect" else "",
        trials=list_trials(tool, user, draft),
        draft=draft,
    )


def build_confirmation(spec: ToolSpec) -> str:
    """Return a word that changes when the call would do something else.

    It keeps people from sending a request by mistake; it protects nothing.
    """
    text = json.dumps([spec.kind, spec.config], sort_keys=True, default=str)
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def run_trial(
    request: HttpRequest,
    form: ToolForm | None,
    tool: Tool,
    *,
    url: str,
    draft: str = "",
    loaded: LoadedTrial | None = None,
) -> TrialPane:
    """Make the call that the pane requests, or only show its arguments.

    `form` holds the typed definition; None for the stored one. Its errors are shown in
    the pane, and nothing is called. `loaded` is an earlier call whose arguments are
    requested.
    """
    user: Any = request.user
    flaws = find_form_flaws(form) if form else []
    called = form.instance if form and not flaws else tool
    spec = freeze_typed_tool(called, form)
    pane = open_typed_pane(
        request, called, spec, url=url, user=user, draft=draft, loaded=loaded
    )
    is_call = NO_CALL.isdisjoint(request.POST)
    pane.arguments.is_checked = is_call or "switch_to" in request.POST
    if not is_call:
        return pane
    pane.is_unsaved = is_unsaved(called, tool)
    pane.flaws = flaws
    if not flaws and pane.arguments.is_valid():
        show_typed_request(pane, spec)
        if "preview" not in request.POST:
            call_typed_tool(pane, by=user, stop=watch_disconnect(request))
    return pane


def reopen_trial_pane(
    request: HttpRequest,
    form: ToolForm,
    tool: Tool,
    *,
    url: str,
    user: User,
    draft: str = "",
) -> TrialPane:
    """Return the pane with the typed arguments, after `form` was not saved."""
    if not any(name.startswith(TYPED_ARGUMENTS) for name in request.POST):
        return open_trial_pane(tool, url=url, user=user, draft=draft)
    called = tool if find_form_flaws(form) else form.instance
    spec = freeze_typed_tool(called, form)
    pane = open_typed_pane(request, called, spec, url=url, user=user, draft=draft)
    pane.arguments.is_checked = False
    return pane


def freeze_typed_tool(tool: Tool, form: ToolForm | None) -> ToolSpec:
    """Return the spec of `tool`, with the typed arguments of a form with errors."""
    spec = freeze_tool(tool)
    if form and find_form_flaws(form) and "args_schema" in form.cleaned_data:
        schema = form.cleaned_data["args_schema"]
        return spec.model_copy(update={"args_schema": schema})
    return spec


def open_typed_pane(
    request: HttpRequest,
    tool: Tool,
    spec: ToolSpec,
    *,
    url: str,
    user: User,
    draft: str,
    loaded: LoadedTrial | None = None,
) -> TrialPane:
    """Return the pane with the arguments of the request, or those of `loaded`."""
    values = loaded.values if loaded else None
    arguments = open_typed_arguments(request, spec.args_schema, values=values)
    pane = build_pane(tool, spec, url=url, user=user, arguments=arguments, draft=draft)
    pane.is_confirmed = request.POST.get("confirmed", "") == pane.confirmation
    show_loaded(pane, loaded)
    return pane


def show_loaded(pane: TrialPane, loaded: LoadedTrial | None) -> None:
    """Say what could not be loaded of an earlier call."""
    if loaded is not None:
        pane.note = loaded.note
        mark_lost_secrets(pane.arguments, loaded.stored)


def is_unsaved(typed: Tool, stored: Tool) -> bool:
    """Whether typed values differ from those that are stored, if any are."""
    if stored.pk is None:
        return True
    return serialize_definition(typed) != serialize_definition(stored)


def find_form_flaws(form: ToolForm) -> list[FormFlaw]:
    if form.is_valid():
        return []
    return [FormFlaw(one, one.errors) for one in form if one.errors]


def show_typed_request(pane: TrialPane, spec: ToolSpec) -> None:
    """Show what the call would send, or why it cannot be sent."""
    pane.is_previewed = True
    try:
        shown = show_request(spec, pane.arguments.tool_input())
        pane.request_text = replace_unstorable(shown)
    except ToolFailed as refused:
        pane.refused = replace_unstorable(str(refused))


def call_typed_tool(pane: TrialPane, *, by: User, stop: threading.Event) -> None:
    """Make the call, unless a person has to confirm it first.

    Stop in the pane aborts the request, as leaving the page does.
    """
    if pane.confirmation and not pane.is_confirmed:
        pane.must_confirm = True
        return
    tool_input = pane.arguments.tool_input()
    pane.result = try_tool(
        pane.tool,
        tool_input,
        by=by,
        is_unsaved=pane.is_unsaved,
        draft=pane.draft,
        stop=stop,
    )
    pane.shows_code = pane.tool.pk is None or can_edit_tool(pane.tool, by)
    pane.trials = list_trials(pane.tool, by, pane.draft)
