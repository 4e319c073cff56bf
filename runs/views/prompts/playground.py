"""The playground: prompts alone, in several columns, each a call in the background."""

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from runs.engine.types import AgentSpec, Message, ModelSettings, PromptSpec
from runs.forms.playground import COLUMNS, ROLES, Column, PlaygroundForm, Typed
from runs.htmx import HtmxRequest
from runs.models import ModelCall, PromptTemplate, Provider, Run
from runs.services.errors import InputsRefused, RunsError
from runs.services.freeze_agent import prompt_spec_of, spec_of
from runs.services.rebuild_prompt import rebuild_prompt
from runs.services.try_prompts import try_prompts
from runs.views.run_context import loaded
from runs.views.run_detail import place_of
from runs.views.turns import Turn, live_key, runs_in, turns_of
from runs.whole_number import whole_number


class Start(NamedTuple):
    """What the page begins with."""

    columns: list[Column]
    values: dict[str, str]
    note: str = ""
    """What is otherwise than where it comes from."""
    runs: list[Run] = []


class Result(NamedTuple):
    """What came of a column."""

    run: Run
    turn: Turn


@require_http_methods(["GET", "POST"])
def playground(request: HtmxRequest) -> HttpResponse:
    """Show the columns; POST runs them all, or adds or takes away one."""
    if not Provider.objects.usable_by(request.user).exists():
        messages.warning(request, "The playground needs a provider. Add one first.")
        return redirect("provider-create")
    if request.method == "GET":
        return shown(request, start_of(request))
    form = PlaygroundForm(request.POST, user=request.user)
    do = request.POST.get("do", "run")
    if do != "run":
        columns = changed(form.begins(), do)
        typed = {name: str(form[f].value() or "") for name, f in fields_of(form)}
        return shown(request, Start(columns, typed))
    if form.is_valid():
        tries = [one.to_try() for one in form.columns]
        try:
            runs = try_prompts(tries, by=request.user, inputs=form.values())
        except InputsRefused as error:
            for name, told in error.errors:
                known = dict(fields_of(form))
                form.add_error(known.get(name), told)
        except RunsError as error:
            form.add_error(None, str(error))
        else:
            key = "-".join(str(run.pk) for run in runs)
            return redirect(f"{reverse('playground')}?runs={key}")
    return shown(request, Start([], {}), form)


@require_POST
def playground_variables(request: HtmxRequest) -> HttpResponse:
    """Give the fields of the variables that the columns have as they are typed."""
    form = PlaygroundForm(request.POST, user=request.user)
    return render(request, "playground/_variables.html", {"form": form})


@require_GET
def run_playground(request: HttpRequest, pk: int, number: int) -> HttpResponse:
    """Lead from a step of a run to the playground with its model call."""
    run = get_object_or_404(Run.objects.visible_to(request.user), pk=pk)
    place = place_of(run, number)
    if place is None or place.call is None:
        raise Http404
    return redirect(f"{reverse('playground')}?from_call={place.call.pk}")


def shown(
    request: HtmxRequest, start: Start, form: PlaygroundForm | None = None
) -> HttpResponse:
    """Show the page."""
    if form is None:
        form = PlaygroundForm(
            user=request.user, columns=start.columns, values=start.values
        )
    pairs = zip(start.runs, turns_of(start.runs), strict=True)
    results = [Result(run, turn) for run, turn in pairs]
    context = {
        "form": form,
        "columns": [
            (one, results[n] if n < len(results) else None)
            for n, one in enumerate(form.columns)
        ],
        "can_add": len(form.columns) < COLUMNS,
        "can_drop": len(form.columns) > 1,
        "note": start.note,
        "live": live_key(start.runs),
    }
    return render(request, "playground/playground.html", context)


def fields_of(form: PlaygroundForm) -> list[tuple[str, str]]:
    """Return each variable with the name of its field."""
    return [
        (name, field.name)
        for name, field in zip(form.names, form.variables(), strict=True)
    ]


def changed(columns: list[Column], do: str) -> list[Column]:
    """Return the columns with a copy of the last one, a message more, or one less."""
    verb, _, place = do.partition("-")
    number = (whole_number(place) or 0) - 1
    if verb == "add" and len(columns) < COLUMNS:
        return [*columns, columns[-1]]
    if not 0 <= number < len(columns):
        return columns
    if verb == "drop" and len(columns) > 1:
        return columns[:number] + columns[number + 1 :]
    if verb == "message":
        one = columns[number]
        last = one.messages[-1].role if one.messages else "assistant"
        more = Typed("assistant" if last == "user" else "user", "")
        columns[number] = replace(one, messages=[*one.messages, more])
    return columns


def start_of(request: HtmxRequest) -> Start:
    """Return what the address asks for: earlier runs, a model call, or a prompt."""
    asked, user = request.GET, request.user
    if "runs" in asked:
        return from_runs(asked["runs"], user)
    if "from_call" in asked:
        return from_call(whole_number(asked["from_call"]), user)
    if "prompt" in asked:
        return from_prompt(whole_number(asked["prompt"]), user)
    system = Typed("system", "You answer in one short paragraph.")
    return Start([Column([system, Typed("user", "{input}")])], {})


def from_runs(key: str, user: User) -> Start:
    """Return the columns that these runs were, with their results."""
    tried = Run.objects.visible_to(user).filter(agent__is_playground=True)
    runs = runs_in(key, loaded(tried), most=COLUMNS)
    values: dict[str, str] = {}
    for run in runs:
        values |= run.inputs
    columns = [column_of(spec_of(run.spec)) for run in runs]
    return Start(columns or [Column([])], values, runs=runs)


def column_of(spec: AgentSpec) -> Column:
    """Return the column a run was."""
    prompt = spec.prompt or PromptSpec()
    typed = [Typed(one.role, one.template) for one in prompt.messages or ()]
    return Column(typed, key_of(spec.model), spec.model.parameters)


def key_of(model: ModelSettings) -> str:
    """Return the key of a model in the field of a column."""
    return f"{model.provider_id}:{model.model}"


def from_call(pk: int | None, user: User) -> Start:
    """Return the messages a model call of a visible run was sent."""
    mine = Run.objects.visible_to(user)
    call = get_object_or_404(
        ModelCall.objects.select_related("run__spec"), pk=pk, run__in=mine
    )
    rebuilt = rebuild_prompt(call)
    if rebuilt is None:
        note = "The record does not lead to this model call any more."
        return Start([Column([])], {}, note)
    request = rebuilt.request
    parameters = dict(request.settings.parameters)
    if request.stop:
        parameters.setdefault("stop", list(request.stop))
    column = Column(messages_of(request.messages), key_of(request.settings), parameters)
    said = [f"From step {call.number + call.at_index + 1} of run {call.run_id}."]
    if any("{" in one.text or "}" in one.text for one in request.messages):
        said.append("Braces are doubled, so that they stay text.")
    if request.tools:
        count = len(request.tools)
        words = "function is" if count == 1 else f"{count} functions are"
        said.append(
            f"Its {words} not sent: here a prompt is tried alone. Calls and results "
            "are shown as plain text."
        )
    return Start([column], {}, " ".join(said))


def messages_of(sent: Iterable[Message]) -> list[Typed]:
    """Return messages as they can be typed; calls and results as text."""
    known = dict(ROLES)
    return [
        Typed(one.role if one.role in known else "user", doubled(plain(one)))
        for one in sent
    ]


def plain(message: Message) -> str:
    """Return a message's text, with the calls it asks for."""
    calls = [f"Calls {call.name}({call.arguments})" for call in message.tool_calls]
    text = f"Result: {message.text}" if message.role == "tool" else message.text
    return "\n".join(filter(None, [text, *calls]))


def doubled(text: str) -> str:
    """Return `text` with braces that are no variables."""
    return text.replace("{", "{{").replace("}", "}}")


def from_prompt(pk: int | None, user: User) -> Start:
    """Return a prompt of the library that one may see."""
    row = get_object_or_404(PromptTemplate.objects.visible_to(user), pk=pk)
    prompt = prompt_spec_of(row)
    typed = [Typed(one.role, one.template) for one in prompt.messages or ()]
    typed = typed or [Typed("user", prompt.template or "")]
    return Start([Column(typed)], dict(prompt.partials), f"From the prompt {row}.")
