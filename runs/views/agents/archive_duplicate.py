"""Archive, duplicate and rename agents, prompts and providers."""

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from runs.htmx import HtmxRequest
from runs.models import (
    Agent,
    AnnotationQueue,
    Dataset,
    Evaluator,
    PromptTemplate,
    Provider,
    Schedule,
)
from runs.services.agents.manage import (
    archive_definition,
    duplicate_definition,
    unarchive_definition,
)
from runs.services.datasets.duplicate import duplicate_dataset
from runs.services.evaluators.save import duplicate_evaluator
from runs.ui.frame.undo import add_message_with_undo
from tools.ownership import Owned

DEFINITION_MODELS: dict[
    str,
    type[Agent]
    | type[AnnotationQueue]
    | type[Dataset]
    | type[Evaluator]
    | type[PromptTemplate]
    | type[Provider],
] = {
    "agent": Agent,
    "dataset": Dataset,
    "evaluator": Evaluator,
    "prompt": PromptTemplate,
    "provider": Provider,
    "queue": AnnotationQueue,
}


@require_POST
def definition_archive(request: HtmxRequest, noun: str, pk: int) -> HttpResponse:
    thing = get_object_or_404(
        DEFINITION_MODELS[noun].objects.editable_by(request.user), pk=pk
    )
    archive_definition(thing)
    add_message_with_undo(
        request,
        _("%(name)s archived.") % {"name": thing},
        reverse(f"{noun}-unarchive", args=[pk]),
    )
    if effect := describe_archive_effect(thing):
        messages.warning(request, effect)
    return redirect(f"{noun}-list")


def describe_archive_effect(thing: Owned) -> str:
    """Explain what archiving means for the users of a definition."""
    if isinstance(thing, Agent):
        number = Schedule.objects.on().filter(agent=thing).count()
        if not number:
            return _("It accepts no new runs. Runs that have started continue.")
        return ngettext(
            "It accepts no new runs, and %(count)s schedule will start no more runs. "
            "Runs that have started continue.",
            "It accepts no new runs, and %(count)s schedules will start no more runs. "
            "Runs that have started continue.",
            number,
        ) % {"count": number}
    if isinstance(thing, AnnotationQueue | Dataset | Evaluator):
        return ""
    if isinstance(thing, PromptTemplate):
        return _("Agents that use it keep working.")
    agents = Agent.objects.filter(provider=thing.pk, archived_at=None)
    number = agents.filter(is_playground=False).count()
    if not number:
        return _("No agent uses it.")
    return ngettext(
        "%(count)s agent cannot run until you restore the provider or select another "
        "one for the agent.",
        "%(count)s agents cannot run until you restore the provider or select another "
        "one for the agents.",
        number,
    ) % {"count": number}


@require_POST
def definition_unarchive(request: HtmxRequest, noun: str, pk: int) -> HttpResponse:
    thing = get_object_or_404(
        DEFINITION_MODELS[noun].objects.editable_by(request.user), pk=pk
    )
    unarchive_definition(thing)
    messages.success(request, _("%(name)s restored.") % {"name": thing})
    return redirect(f"{noun}-detail", pk=pk)


@require_POST
def definition_duplicate(request: HtmxRequest, noun: str, pk: int) -> HttpResponse:
    """Create a private copy and open it."""
    thing = get_object_or_404(
        DEFINITION_MODELS[noun].objects.visible_to(request.user), pk=pk
    )
    copy = duplicate_by_type(thing, by=request.user)
    messages.success(
        request,
        _("Copy of %(name)s created. Only you can see it.") % {"name": thing},
    )
    return redirect(f"{noun}-edit" if noun == "agent" else f"{noun}-detail", pk=copy.pk)


def duplicate_by_type(thing: Owned, *, by: User) -> Owned:
    """Return a private copy, with what belongs to a definition of its type."""
    if isinstance(thing, Dataset):
        return duplicate_dataset(thing, by=by)
    if isinstance(thing, Evaluator):
        return duplicate_evaluator(thing, by=by)
    return duplicate_definition(thing, by=by)


@require_POST
def definition_rename(request: HtmxRequest, noun: str, pk: int) -> HttpResponse:
    rows = DEFINITION_MODELS[noun].objects.editable_by(request.user).filter(pk=pk)
    get_object_or_404(rows)
    name = request.POST.get("name", "").replace("\0", "").strip()
    if not name or len(name) > 120:
        messages.error(request, _("Not renamed. Enter a name of 1 to 120 characters."))
    else:
        thing = rows.get()
        before, thing.name = thing.name, name
        thing.save(update_fields=["name", "updated_at"])
        add_message_with_undo(
            request,
            _("Renamed to %(name)s.") % {"name": name},
            reverse(f"{noun}-rename", args=[pk]),
            name=before,
        )
    return redirect(f"{noun}-detail", pk=pk)
