"""The playground: compare prompts in columns, each one model call."""

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from runs.engine.prompts import escape_braces
from runs.engine.types import AgentSpec, Message, ModelSettings, PromptSpec
from runs.forms.playground import (
    MAX_COLUMNS,
    ROLES,
    PlaygroundColumn,
    PlaygroundForm,
    TypedMessage,
)
from runs.htmx import HtmxRequest
from runs.models import ModelCall, PromptTemplate, Provider, Run
from runs.services.errors import InputsRefused, RunsError
from runs.services.prompts.trials import start_prompt_trials
from runs.services.spec.freeze import build_prompt_spec
from runs.services.telemetry.sent_prompt import load_sent_prompt
from runs.store.specs import load_spec
from runs.views.chat.turns import (
    RunTurn,
    build_run_turns,
    build_stream_key,
    load_runs_by_key,
)
from runs.views.run.context import select_page_relations
from runs.views.run.step_detail import find_row_record
from runs.whole_number import parse_whole_number


class PlaygroundState(NamedTuple):
    """The initial state of the page."""

    columns: list[PlaygroundColumn]
    values: dict[str, str]
    note: str = ""
    """How the columns differ from their source."""
    runs: list[Run] = []


class ColumnResult(NamedTuple):
    run: Run
    turn: RunTurn


@require_http_methods(["GET", "POST"])
def playground(request: HtmxRequest) -> HttpResponse:
    """Show the columns; POST runs them all, or adds or removes one."""
    if not Provider.objects.usable_by(request.user).exists():
        messages.warning(
            request, _("The playground needs a provider. Create one first.")
        )
        return redirect("provider-create")
    if request.method == "GET":
        return render_playground(request, load_playground_state(request))
    form = PlaygroundForm(request.POST, user=request.user)
    do = request.POST.get("do", "run")
    if do != "run":
        columns = apply_column_action(form.to_columns(), do)
        typed = {
            name: str(form[f].value() or "") for name, f in list_variable_fields(form)
        }
        return render_playground(request, PlaygroundState(columns, typed))
    if form.is_valid():
        tries = [one.to_prompt_try() for one in form.columns]
        try:
            runs = start_prompt_trials(tries, by=request.user, inputs=form.values())
        except InputsRefused as error:
            for name, message in error.errors:
                known = dict(list_variable_fields(form))
                form.add_error(known.get(name), message)
        except RunsError as error:
            form.add_error(None, str(error))
        else:
            key = "-".join(str(run.pk) for run in runs)
            return redirect(f"{reverse('playground')}?runs={key}")
    return render_playground(request, PlaygroundState([], {}), form)


@require_POST
def playground_variables(request: HtmxRequest) -> HttpResponse:
    """Return the fields for the variables in the unsaved columns."""
    form = PlaygroundForm(request.POST, user=request.user)
    return render(request, "playground/_variables.html", {"form": form})


@require_GET
def run_playground(request: HttpRequest, pk: int, number: int) -> HttpResponse:
    run = get_object_or_404(Run.objects.visible_to(request.user), pk=pk)
    place = find_row_record(run, number)
    if place is None or place.call is None:
        raise Http404
    return redirect(f"{reverse('playground')}?from_call={place.call.pk}")


def render_playground(
    request: HtmxRequest, start: PlaygroundState, form: PlaygroundForm | None = None
) -> HttpResponse:
    if form is None:
        form = PlaygroundForm(
            user=request.user, columns=start.columns, values=start.values
        )
    pairs = zip(start.runs, build_run_turns(start.runs), strict=True)
    results = [ColumnResult(run, turn) for run, turn in pairs]
    context = {
        "form": form,
        "columns": [
            (one, results[n] if n < len(results) else None)
            for n, one in enumerate(form.columns)
        ],
        "can_add": len(form.columns) < MAX_COLUMNS,
        "can_drop": len(form.columns) > 1,
        "note": start.note,
        "live": build_stream_key(start.runs),
    }
    return render(request, "playground/playground.html", context)


def list_variable_fields(form: PlaygroundForm) -> list[tuple[str, str]]:
    return [
        (name, field.name)
        for name, field in zip(form.names, form.variables(), strict=True)
    ]


def apply_column_action(
    columns: list[PlaygroundColumn], do: str
) -> list[PlaygroundColumn]:
    """Add a copy of the last column, drop a column, or add a message to one."""
    verb, _, place = do.partition("-")
    number = (parse_whole_number(place) or 0) - 1
    if verb == "add" and len(columns) < MAX_COLUMNS:
        return [*columns, columns[-1]]
    if not 0 <= number < len(columns):
        return columns
    if verb == "drop" and len(columns) > 1:
        return columns[:number] + columns[number + 1 :]
    if verb == "message":
        one = columns[number]
        last = one.messages[-1].role if one.messages else "assistant"
        more = TypedMessage("assistant" if last == "user" else "user", "")
        columns[number] = replace(one, messages=[*one.messages, more])
    return columns


def load_playground_state(request: HtmxRequest) -> PlaygroundState:
    """Return the state for the query: earlier runs, a model call, or a prompt."""
    asked, user = request.GET, request.user
    if "runs" in asked:
        return load_state_from_runs(asked["runs"], user)
    if "from_call" in asked:
        return load_state_from_call(parse_whole_number(asked["from_call"]), user)
    if "prompt" in asked:
        return load_state_from_prompt(parse_whole_number(asked["prompt"]), user)
    system = TypedMessage("system", "You answer in one short paragraph.")
    return PlaygroundState(
        [PlaygroundColumn([system, TypedMessage("user", "{input}")])], {}
    )


def load_state_from_runs(key: str, user: User) -> PlaygroundState:
    tried = Run.objects.visible_to(user).filter(agent__is_playground=True)
    runs = load_runs_by_key(key, select_page_relations(tried), most=MAX_COLUMNS)
    values: dict[str, str] = {}
    for run in runs:
        values |= run.inputs
    columns = [build_column(load_spec(run.spec)) for run in runs]
    return PlaygroundState(columns or [PlaygroundColumn([])], values, runs=runs)


def build_column(spec: AgentSpec) -> PlaygroundColumn:
    prompt = spec.prompt or PromptSpec()
    typed = [TypedMessage(one.role, one.template) for one in prompt.messages or ()]
    return PlaygroundColumn(typed, format_model_key(spec.model), spec.model.parameters)


def format_model_key(model: ModelSettings) -> str:
    return f"{model.provider_id}:{model.model}"


def load_state_from_call(pk: int | None, user: User) -> PlaygroundState:
    mine = Run.objects.visible_to(user)
    call = get_object_or_404(
        ModelCall.objects.select_related("run__spec"), pk=pk, run__in=mine
    )
    rebuilt = load_sent_prompt(call)
    if rebuilt is None:
        note = _("This model call can no longer be reconstructed from the record.")
        return PlaygroundState([PlaygroundColumn([])], {}, note)
    request = rebuilt.request
    parameters = dict(request.settings.parameters)
    if request.stop:
        parameters.setdefault("stop", list(request.stop))
    column = PlaygroundColumn(
        build_typed_messages(request.messages),
        format_model_key(request.settings),
        parameters,
    )
    said = [
        _("From step %(step)s of run %(run)s.")
        % {"step": call.number + call.at_index + 1, "run": call.run_id}
    ]
    if any("{" in one.text or "}" in one.text for one in request.messages):
        said.append(_("Braces are doubled so that they remain text."))
    if request.tools:
        count = len(request.tools)
        said.append(
            ngettext(
                "Its function is not sent, because the playground only tests prompts. "
                "Calls and results are shown as plain text.",
                "Its %(count)s functions are not sent, because the playground only "
                "tests prompts. Calls and results are shown as plain text.",
                count,
            )
            % {"count": count}
        )
    return PlaygroundState([column], {}, " ".join(said))


def build_typed_messages(sent: Iterable[Message]) -> list[TypedMessage]:
    """Return messages that can be edited, with calls and results as text."""
    known = dict(ROLES)
    return [
        TypedMessage(
            one.role if one.role in known else "user",
            escape_braces(flatten_message(one)),
        )
        for one in sent
    ]


def flatten_message(message: Message) -> str:
    """Return the text of a message, followed by its tool calls."""
    calls = [f"Calls {call.name}({call.arguments})" for call in message.tool_calls]
    text = f"Result: {message.text}" if message.role == "tool" else message.text
    return "\n".join(filter(None, [text, *calls]))


def load_state_from_prompt(pk: int | None, user: User) -> PlaygroundState:
    row = get_object_or_404(PromptTemplate.objects.visible_to(user), pk=pk)
    prompt = build_prompt_spec(row)
    typed = [TypedMessage(one.role, one.template) for one in prompt.messages or ()]
    typed = typed or [TypedMessage("user", prompt.template or "")]
    return PlaygroundState(
        [PlaygroundColumn(typed)],
        dict(prompt.partials),
        _("From the prompt %(name)s.") % {"name": row},
    )
