"""The inbox: what runs ask people, one by one or several at once, and the answers."""

import json
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from runs.htmx import HtmxRequest, page_or_part, wants_part
from runs.models import Allowance, Decision
from runs.services.answer_decision import approve_step, reject_step, settle_outcome
from runs.services.errors import (
    AlreadyDecided,
    ArgumentsRefused,
    FieldError,
    NotShown,
    RunsError,
)
from runs.services.revoke_allowance import revoke_allowance
from runs.views.exact import as_json
from runs.views.people import safe_next
from runs.views.questions import (
    Asked,
    Question,
    open_questions,
    question_of,
    with_rows,
)
from runs.whole_number import whole_number
from tools.text_flaw import NO_JSON, json_flaw

SHOWN_AT_MOST = 100
ANSWERED_ON_A_PAGE = 50
TABS = ("open", "mine")


@require_GET
def approval_list(request: HtmxRequest) -> HttpResponse:
    """Show everything that waits for a person, and the most urgent of it whole."""
    return inbox(request, None)


@require_GET
def approval_head(request: HtmxRequest) -> HttpResponse:
    """Show how many questions are open: the part above the list."""
    context = {"counts": counts(request), "tab": tab_of(request)}
    return render(request, "approvals/_head.html", context)


@require_GET
def approval_detail(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show one question; to htmx only its pane."""
    decision = question_for(request, pk)
    if wants_part(request):
        context = {"question": question_of(decision, request.user)}
        response = render(request, "approvals/_detail.html", context)
        response.headers["Vary"] = "HX-Request"
        return response
    return inbox(request, question_of(decision, request.user))


@require_GET
def approval_answered(request: HtmxRequest) -> HttpResponse:
    """Show who decided what, the newest first."""
    rows = Decision.objects.visible_to(request.user).exclude(answer="")
    before = whole_number(request.GET.get("before", ""))
    if before is not None:
        edge = rows.filter(pk=before).values_list("at", flat=True).first()
        rows = rows.filter(at__lt=edge) if edge else rows.none()
    found = with_rows(rows).order_by("-at", "-pk")[: ANSWERED_ON_A_PAGE + 1]
    answered = [Asked(one) for one in found[:ANSWERED_ON_A_PAGE]]
    context = {
        "answered": answered,
        "next": answered[-1].decision.pk if len(found) > ANSWERED_ON_A_PAGE else None,
        "counts": counts(request),
        "tab": "answered",
    }
    page = "approvals/answered.html"
    return page_or_part(request, page, "approvals/_answered.html", context)


@require_POST
def approval_answer(request: HtmxRequest, pk: int) -> HttpResponse:
    """Take the answer; what was shown counts, and the first answer counts."""
    decision = question_for(request, pk)
    try:
        told = answer(decision, request)
    except AlreadyDecided as error:
        question = question_of(question_for(request, pk), request.user)
        context = {"question": question, "told": str(error), "counts": counts(request)}
        return render(request, "approvals/decided.html", context, status=409)
    except ArgumentsRefused as error:
        question = question_of(decision, request.user).typed(
            request.POST.get("edited", ""),
            error.errors,
            reason=request.POST.get("reason", ""),
            also="alike" in request.POST,
        )
        return inbox(request, question, mistake=WRONG_ARGUMENTS)
    except NotShown as error:
        question = question_of(decision, request.user)
        return inbox(request, question, mistake=str(error), status=409)
    except RunsError as error:
        messages.error(request, str(error))
        return redirect("approval-detail", pk)
    messages.success(request, told)
    return redirect(safe_next(request) if "next" in request.POST else "approval-list")


@require_http_methods(["GET", "POST"])
def approval_several(request: HtmxRequest) -> HttpResponse:
    """Show several calls with their arguments; POST answers all of them."""
    sent = request.POST if request.method == "POST" else request.GET
    picked = {whole_number(pk) for pk in sent.getlist("pick")} - {None}
    mine = Decision.objects.answerable_by(request.user).filter(pk__in=picked)
    rows = open_questions(request.user, pk__in=mine.values("pk"), question="approval")
    questions = [question_of(one, request.user) for one in rows[:SHOWN_AT_MOST]]
    if request.method == "GET":
        context = {"questions": questions, "counts": counts(request)}
        return render(request, "approvals/several.html", context)
    word = request.POST.get("answer", "")
    done = 0
    for question in questions:
        try:
            answer_one(question.decision, request, word)
        except RunsError as error:
            tool = question.decision.step.tool
            messages.error(
                request, f"{tool} in run {question.decision.step.run_id}: {error}"
            )
        else:
            done += 1
    if late := len(picked) - len(questions):
        messages.error(request, f"{late} had been answered before.")
    if done:
        verb = "approved" if word == "approve" else "rejected"
        messages.success(request, f"{done} {verb}. The runs go on.")
    return redirect("approval-list")


@require_GET
def approval_arguments(request: HtmxRequest, pk: int) -> HttpResponse:
    """Give the exact arguments as a file, byte for byte."""
    arguments = question_for(request, pk).shown.get("tool_input")
    text = arguments if isinstance(arguments, str) else as_json(arguments)
    response = HttpResponse(
        text.encode("utf-8", "replace"), content_type="text/plain; charset=utf-8"
    )
    response["Content-Disposition"] = f'attachment; filename="arguments-{pk}.txt"'
    return response


@require_POST
def allowance_revoke(request: HtmxRequest, pk: int) -> HttpResponse:
    """Ask again before each call from now on."""
    mine = Decision.objects.answerable_by(request.user).filter(allowance__isnull=False)
    rows = Allowance.objects.filter(pk__in=mine.values("allowance"))
    allowance = get_object_or_404(rows.select_related("run"), pk=pk)
    revoke_allowance(allowance, by=request.user)
    messages.success(
        request,
        f"{allowance.tool} asks again before each call in run {allowance.run_id}.",
    )
    return redirect(safe_next(request) if "next" in request.POST else "approval-list")


WRONG_ARGUMENTS = "The arguments do not fit the tool. Nothing was answered."


class AnswerUnclear(RunsError):
    """An answer is neither a yes nor a no."""

    def __init__(self) -> None:
        super().__init__("Nothing was answered. Choose Approve or Reject.")


class OutcomeUnclear(RunsError):
    """Nobody said what became of the call."""

    def __init__(self) -> None:
        super().__init__("Nothing was answered. Choose what became of the call.")


def question_for(request: HtmxRequest, pk: int) -> Decision:
    """Return the question, where the person may see it."""
    rows = Decision.objects.visible_to(request.user)
    return get_object_or_404(with_rows(rows), pk=pk)


def inbox(
    request: HtmxRequest,
    question: Question | None,
    *,
    mistake: str = "",
    status: int = 200,
) -> HttpResponse:
    """Answer with the list and one question; the first where none is chosen."""
    tab = tab_of(request)
    rows = open_questions(request.user)
    mine = Decision.objects.answerable_by(request.user)
    if tab == "mine":
        rows = rows.filter(pk__in=mine.values("pk"))
    found = list(rows[:SHOWN_AT_MOST])
    may = set(
        mine.filter(pk__in=[one.pk for one in found]).values_list("pk", flat=True)
    )
    items = [Asked(one, may_answer=one.pk in may) for one in found]
    is_chosen = question is not None
    if question is None and found and not wants_part(request):
        question = question_of(found[0], request.user)
    context = {
        "items": items,
        "question": question,
        "chosen": chosen_in(request, question),
        "view": 2 if is_chosen else 1,
        "tab": tab,
        "counts": counts(request),
        "mistake": mistake,
        "meanwhile": answered_meanwhile(request) if wants_part(request) else None,
    }
    if request.method == "POST":
        return render(request, "approvals/list.html", context, status=status)
    page = "approvals/list.html"
    return page_or_part(request, page, "approvals/_list.html", context)


def tab_of(request: HtmxRequest) -> str:
    """Return which questions are listed."""
    tab = request.GET.get("tab", "")
    return tab if tab in TABS else "open"


def chosen_in(request: HtmxRequest, question: Question | None) -> int:
    """Return the question that is open beside the list."""
    if question is not None:
        return question.decision.pk
    return whole_number(request.GET.get("chosen", "")) or 0


def answered_meanwhile(request: HtmxRequest) -> Decision | None:
    """Return the question beside the list, where somebody has answered it by now."""
    pk = chosen_in(request, None)
    rows = Decision.objects.visible_to(request.user).filter(pk=pk).exclude(answer="")
    return rows.select_related("by").first()


def counts(request: HtmxRequest) -> dict[str, int]:
    """Return how many questions are open, and how many of them this person answers."""
    found = Decision.objects.visible_to(request.user).open()
    mine = Decision.objects.answerable_by(request.user).open()
    return {"open": found.count(), "mine": mine.count()}


def answer(decision: Decision, request: HtmxRequest) -> str:
    """Pass the answer on to its service; return what to tell the person."""
    word, tool = request.POST.get("answer", ""), decision.step.tool
    if decision.question == Decision.Question.OUTCOME:
        if not word:
            raise OutcomeUnclear
        settle_outcome(
            decision,
            by=request.user,
            answer=word,
            result=request.POST.get("reason", ""),
            shown=request.POST.get("shown"),
        )
        ended = word == Decision.Answer.FAIL
        told = "The run has ended." if ended else "The run goes on."
        return f"Your answer about {tool} is kept. {told}"
    answer_one(decision, request, word)
    if word == "reject":
        return f"{tool} was rejected. The model is told and goes on."
    if "alike" in request.POST:
        run = decision.step.run_id
        return f"Every call of {tool} in run {run} is approved. The run goes on."
    return f"{tool} was approved. The run goes on."


def answer_one(decision: Decision, request: HtmxRequest, word: str) -> None:
    """Approve or reject; raise where the word is neither."""
    sent = request.POST
    shown = sent.get(f"shown-{decision.pk}", sent.get("shown"))
    reason = sent.get("reason", "")
    if word == "reject":
        reject_step(decision, by=request.user, reason=reason, shown=shown)
    elif word == "approve":
        approve_step(
            decision,
            by=request.user,
            edited_input=edited_input(decision, sent.get("edited")),
            reason=reason,
            alike="alike" in sent,
            shown=shown,
        )
    else:
        raise AnswerUnclear


def edited_input(decision: Decision, text: str | None) -> Any:
    """Return other arguments; None where nothing was changed."""
    if text is None:
        return None
    shown = decision.shown.get("tool_input")
    if isinstance(shown, str):
        plain = text.replace("\r\n", "\n")
        return None if plain == shown.replace("\r\n", "\n") else plain
    try:
        typed = json.loads(text)
    except (ValueError, RecursionError) as error:
        why = f"{NO_JSON} {json_flaw(text)}"
        raise ArgumentsRefused([FieldError("", why)]) from error
    # Not by ==: to Python, true is 1 and 1 is 1.0.
    same = json.dumps(typed, sort_keys=True) == json.dumps(shown, sort_keys=True)
    return None if same else typed
