"""The list of evaluators, the form, and trying one on a past run."""

from typing import Any, NamedTuple

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from runs.evaluation.registry import EVALUATOR_KINDS
from runs.evaluation.statistics import Agreement
from runs.evaluation.types import EvaluationExample, ExpectedCall, ScoreResult
from runs.forms.evaluators.evaluator import EvaluatorForm
from runs.forms.evaluators.trial import EvaluatorTrialForm
from runs.htmx import HtmxRequest, render_page_or_part
from runs.models import Evaluator, EvaluatorRevision, Run
from runs.services.annotation.agreement import load_evaluator_agreement
from runs.services.evaluation.score_run import score_run
from runs.services.evaluators.save import save_evaluator
from runs.ui.evaluation.evaluator_labels import (
    get_evaluator_kind_label,
    list_evaluator_kinds,
)
from runs.ui.list_search import get_search_text, search_rows
from runs.views.lists.actions import build_definition_choices
from runs.views.lists.page import render_list

DEFAULT_KIND = "exact"
MAX_LISTED_REVISIONS = 20
TRIAL_WAIT_SECONDS = 5.0
"""How long a judge may wait for its turn at the provider."""


class RevisionLine(NamedTuple):
    """A revision, and how far it agrees with people."""

    revision: EvaluatorRevision
    agreement: Agreement | None


@require_GET
def evaluator_list(request: HtmxRequest) -> HttpResponse:
    away = request.GET.get("archived") == "1"
    evaluators = (
        Evaluator.objects.visible_to(request.user)
        .filter(archived_at__isnull=not away)
        .select_related("owner")
        .order_by("name")
    )
    query = get_search_text(request)
    evaluators = search_rows(evaluators, query, "name", "kind", "owner__username")
    titles = {kind.name: kind.title for kind in list_evaluator_kinds()}
    return render_list(
        request,
        "evaluator",
        rows=evaluators,
        away=away,
        q=query,
        titles=titles,
        **build_definition_choices(Evaluator, request.user, away=away),
    )


@require_http_methods(["GET", "POST"])
def evaluator_create(request: HtmxRequest) -> HttpResponse:
    kind = request.GET.get("kind", DEFAULT_KIND)
    if kind not in {one.name for one in list_evaluator_kinds()}:
        raise Http404
    form = EvaluatorForm(
        request.POST or None, instance=Evaluator(owner=request.user, kind=kind)
    )
    if form.is_valid():
        evaluator = save_form(form, by=request.user)
        messages.success(
            request, _("Evaluator %(name)s created.") % {"name": evaluator}
        )
        return redirect("evaluator-detail", pk=evaluator.pk)
    context = {"form": form, "evaluator": None, "kinds": list_evaluator_kinds()}
    return render_evaluator(request, context)


@require_http_methods(["GET", "POST"])
def evaluator_detail(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show one evaluator; its owner can change it."""
    evaluator = get_object_or_404(
        Evaluator.objects.visible_to(request.user).select_related("owner"), pk=pk
    )
    may = Evaluator.objects.editable_by(request.user).filter(pk=pk).exists()
    form = EvaluatorForm((request.POST or None) if may else None, instance=evaluator)
    if form.is_valid():
        save_form(form, by=request.user)
        messages.success(request, _("Evaluator %(name)s saved.") % {"name": evaluator})
        return redirect("evaluator-detail", pk=pk)
    context = {"form": form, "evaluator": Evaluator.objects.get(pk=pk), "may_edit": may}
    return render_evaluator(request, context)


@require_POST
def evaluator_try(request: HtmxRequest, kind: str) -> HttpResponse:
    """Score a past run with the unsaved form; nothing is stored."""
    if kind not in EVALUATOR_KINDS:
        raise Http404
    form = EvaluatorForm(
        request.POST, instance=Evaluator(owner=request.user, kind=kind, name="x")
    )
    form.fields["name"].required = False
    trial = EvaluatorTrialForm(request.user, request.POST)
    is_ready = trial.is_valid() and form.is_valid()
    context = {
        "kind": get_evaluator_kind_label(kind),
        "trial": trial,
        "form_errors": list_config_errors(form) if not form.is_valid() else [],
        "result": score_trial(form, trial, request.user) if is_ready else None,
        "run": trial.cleaned_data.get("run") if is_ready else None,
    }
    return render_page_or_part(
        request, "evaluators/trial.html", "evaluators/_trial.html", context
    )


def render_evaluator(request: HtmxRequest, context: dict[str, Any]) -> HttpResponse:
    form: EvaluatorForm = context["form"]
    evaluator: Evaluator | None = context["evaluator"]
    context |= {
        "kind": get_evaluator_kind_label(form.instance.kind),
        "is_registered": form.instance.kind in EVALUATOR_KINDS,
        "trial": EvaluatorTrialForm(request.user),
        "may_edit": context.get("may_edit", True),
        "revisions": list_revisions(evaluator, request.user) if evaluator else [],
    }
    return render(request, "evaluators/form.html", context)


def list_revisions(evaluator: Evaluator, user: User) -> list[RevisionLine]:
    """Return the newest revisions."""
    agreements = load_evaluator_agreement(evaluator, viewer=user)
    rows = evaluator.revisions.select_related("by")[:MAX_LISTED_REVISIONS]
    return [RevisionLine(row, agreements.get(row.number)) for row in rows]


def save_form(form: EvaluatorForm, *, by: User) -> Evaluator:
    evaluator = save_evaluator(form.apply(), by=by)
    form.save_sharing()
    return evaluator


def list_config_errors(form: EvaluatorForm) -> list[str]:
    return [
        f"{bound.label}: {error}"
        for bound in form.config_fields()
        for error in bound.errors
    ] + list(map(str, form.non_field_errors()))


def score_trial(
    form: EvaluatorForm, trial: EvaluatorTrialForm, user: User
) -> ScoreResult:
    run: Run = trial.cleaned_data["run"]
    example = EvaluationExample(
        inputs=run.inputs,
        expected_answer=trial.cleaned_data["expected"],
        expected_calls=tuple(
            ExpectedCall.model_validate(call.model_dump())
            for call in trial.cleaned_data["calls"]
        ),
    )
    evaluator = form.apply()
    return score_run(
        run,
        example,
        kind=evaluator.kind,
        config=evaluator.config,
        by=user,
        trial_seconds=TRIAL_WAIT_SECONDS,
    )
