"""The first steps of a new user, and what a user without runs sees."""

from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.db.models import Exists
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from runs.htmx import HtmxRequest
from runs.llm.registry import list_offline_kinds
from runs.models import (
    Agent,
    Decision,
    Experiment,
    Preferences,
    Provider,
    Resume,
    Run,
)
from runs.services.bootstrap import CAUTIOUS, DEMO_SLUGS, HASTY, UNLUCKY

SAMPLE_QUESTIONS = {
    "beijing": gettext_lazy("Plan a day out in Beijing based on the weather"),
    "reykjavik": gettext_lazy("Look at the weather in Reykjavík and plan a day out"),
    "oslo": gettext_lazy("Plan a day out in Oslo that fits the weather"),
}
"""Questions for the demo agent. It answers in their language, and knows the cities."""


class OnboardingStep(NamedTuple):
    """One of the first steps of a new user."""

    title: str
    help: str
    is_done: bool
    url: str
    word: str


@require_POST
def hide_first_steps(request: HtmxRequest) -> HttpResponse:
    """Hide the first steps for this user, or show them again."""
    is_hidden = "show" not in request.POST
    Preferences.objects.update_or_create(
        user=request.user, defaults={"hides_first_steps": is_hidden}
    )
    return redirect("home")


def has_hidden_first_steps(user: User) -> bool:
    return Preferences.objects.filter(user=user, hides_first_steps=True).exists()


class StepsDone(NamedTuple):
    """Which of the first steps somebody has done."""

    run: bool
    answer: bool
    resume: bool
    fork: bool
    provider: bool
    agent: bool
    experiment: bool


def find_done_steps(user: User) -> StepsDone:
    """Ask for all steps in one query."""
    runs = Run.objects.filter(owner=user)
    own_agents = Agent.objects.editable_by(user).exclude(slug__in=DEMO_SLUGS)
    providers = Provider.objects.usable_by(user).exclude(kind__in=list_offline_kinds())
    done = {
        "run": runs,
        "answer": Decision.objects.filter(by=user).exclude(
            answer=Decision.Answer.WITHDRAWN
        ),
        "resume": Resume.objects.filter(by=user),
        "fork": runs.filter(forked_from__isnull=False),
        "provider": providers,
        "agent": own_agents.exclude(is_playground=True),
        "experiment": Experiment.objects.filter(owner=user),
    }
    rows = User.objects.filter(pk=user.pk).order_by()
    columns = {f"has_{name}": Exists(found) for name, found in done.items()}
    return StepsDone(*rows.annotate(**columns).values_list(*columns).get())


def list_first_steps(user: User) -> list[OnboardingStep]:
    """Return the first steps; those of demo agents that do not exist are left out."""
    done = find_done_steps(user)
    return [
        OnboardingStep(
            _("Run an agent"),
            _("The demo agent needs no API key and no network."),
            done.run,
            reverse("agent-list"),
            _("Agents"),
        ),
        *_list_demo_steps(user, done),
        OnboardingStep(
            _("Connect your own model"),
            _(
                "Any server with an OpenAI-compatible API, including one on this "
                "machine."
            ),
            done.provider,
            reverse("provider-create"),
            _("Add provider"),
        ),
        OnboardingStep(
            _("Build an agent"),
            _("Instructions, one or two tools, a limit."),
            done.agent,
            reverse("agent-create"),
            _("New agent"),
        ),
        OnboardingStep(
            _("Test it on a dataset"),
            _("Examples with what you expect, run by two versions side by side."),
            done.experiment,
            reverse("dataset-list"),
            _("Datasets"),
        ),
    ]


def _list_demo_steps(user: User, done: StepsDone) -> list[OnboardingStep]:
    demos = dict(
        Agent.objects.usable_by(user)
        .filter(slug__in=[one.slug for one in (CAUTIOUS, HASTY, UNLUCKY)])
        .values_list("slug", "pk")
    )
    shown = {
        CAUTIOUS: (
            _("Approve a call"),
            _("The cautious planner asks for approval before it checks the weather."),
            done.answer,
        ),
        HASTY: (
            _("Resume a run that reached a limit"),
            _(
                "The hasty planner reaches its limit. Resume its run with 5 rounds; "
                "completed steps are kept."
            ),
            done.resume,
        ),
        UNLUCKY: (
            _("Fork a failed run"),
            _(
                "The unlucky planner's model is always busy. Fork its run and select "
                "the model demo-planner."
            ),
            done.fork,
        ),
    }
    return [
        OnboardingStep(
            title, words, is_done, reverse("agent-detail", args=[pk]), _("Run")
        )
        for variant, (title, words, is_done) in shown.items()
        if (pk := demos.get(variant.slug)) is not None
    ]


def build_welcome_context(user: User, chosen: str) -> dict[str, Any]:
    """Return an agent to try and the first steps, for a user without runs."""
    agents = Agent.objects.usable_by(user).select_related("provider")
    demo = agents.filter(provider__kind__in=list_offline_kinds()).order_by("pk").first()
    chosen = chosen if chosen in SAMPLE_QUESTIONS else "beijing"
    agent = demo or agents.order_by("pk").first()
    return {
        "agent": agent,
        "is_demo": demo is not None,
        "question": SAMPLE_QUESTIONS[chosen] if demo else "",
        "questions": [(w, q) for w, q in SAMPLE_QUESTIONS.items() if w != chosen],
        "tools": [use.tool for use in agent.uses.select_related("tool") if use.tool]
        if agent
        else [],
        "steps": list_first_steps(user),
    }
