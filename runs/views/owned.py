"""What agents, prompts and providers have in common: archive and duplicate."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from runs.htmx import HtmxRequest
from runs.models import Agent, PromptTemplate, Provider, Schedule
from runs.services.archive_definition import archive_definition, unarchive_definition
from runs.services.duplicate_definition import duplicate_definition
from tools.ownership import Owned

MODELS: dict[str, type[Agent] | type[PromptTemplate] | type[Provider]] = {
    "agent": Agent,
    "prompt": PromptTemplate,
    "provider": Provider,
}


@require_POST
def archive(request: HtmxRequest, noun: str, pk: int) -> HttpResponse:
    """Put one away."""
    thing = get_object_or_404(MODELS[noun].objects.editable_by(request.user), pk=pk)
    archive_definition(thing)
    messages.success(request, f"{thing} is in the archive. {told_of(thing)}")
    return redirect(f"{noun}-list")


def told_of(thing: Owned) -> str:
    """Say what becomes of that which uses an archived definition."""
    if isinstance(thing, Agent):
        number = Schedule.objects.on().filter(agent=thing).count()
        schedules = f"{number} schedule{'' if number == 1 else 's'}"
        told = f" {schedules} of it will start nothing." if number else ""
        return f"It takes no new runs; those under way go on.{told}"
    if isinstance(thing, PromptTemplate):
        return "Agents that use it go on."
    agents = Agent.objects.filter(provider=thing.pk, archived_at=None)
    number = agents.filter(is_playground=False).count()
    if not number:
        return "No agent uses it."
    return (
        f"Its {number} agents cannot run until it is taken out again or they get "
        "another provider."
        if number > 1
        else "Its one agent cannot run until it is taken out again or the agent gets "
        "another provider."
    )


@require_POST
def unarchive(request: HtmxRequest, noun: str, pk: int) -> HttpResponse:
    """Take one out of the archive."""
    thing = get_object_or_404(MODELS[noun].objects.editable_by(request.user), pk=pk)
    unarchive_definition(thing)
    messages.success(request, f"{thing} is out of the archive.")
    return redirect(f"{noun}-detail", pk=pk)


@require_POST
def duplicate(request: HtmxRequest, noun: str, pk: int) -> HttpResponse:
    """Make a copy of one's own, and go to it."""
    thing = get_object_or_404(MODELS[noun].objects.visible_to(request.user), pk=pk)
    copy = duplicate_definition(thing, by=request.user)
    messages.success(request, f"This is a copy of {thing}. It is yours alone.")
    return redirect(f"{noun}-edit" if noun == "agent" else f"{noun}-detail", pk=copy.pk)


@require_POST
def rename(request: HtmxRequest, noun: str, pk: int) -> HttpResponse:
    """Give one another name."""
    rows = MODELS[noun].objects.editable_by(request.user).filter(pk=pk)
    get_object_or_404(rows)
    name = request.POST.get("name", "").replace("\0", "").strip()
    if not name or len(name) > 120:
        messages.error(request, "A name has 1 to 120 characters. Nothing was changed.")
    else:
        thing = rows.get()
        thing.name = name
        thing.save(update_fields=["name", "updated_at"])
        messages.success(request, f"It is called {name} now.")
    return redirect(f"{noun}-detail", pk=pk)
