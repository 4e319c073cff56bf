"""The approvals pages: open decisions, one or several at once, and past ones."""

from collections.abc import Iterable

from django.contrib import messages
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from runs.htmx import HtmxRequest, render_page_or_part, wants_part
from runs.models import Allowance, Decision, Run
from runs.services.approvals.answer import (
    approve_step,
    reject_step,
    revoke_allowance,
    settle_outcome,
)
from runs.services.errors import (
    AlreadyDecided,
    ArgumentsRefused,
    RunsError,
    ShownCallChanged,
)
from runs.ui.list_of_run import keep_list
from runs.ui.list_search import get_search_text, search_rows
from runs.ui.reveal_invisible import dump_readable_json
from runs.views.accounts import get_safe_next_url
from runs.views.approvals.details import (
    DecisionDetail,
    DecisionRow,
    build_decision_detail,
    parse_edited_input,
    query_open_decisions,
    select_decision_relations,
)
from runs.views.approvals.refused import keep_refused_answer
from runs.whole_number import parse_whole_number

MAX_LISTED = 100
ANSWERED_PER_PAGE = 50
SEARCH_FIELDS = ("step__tool", "step__run__agent__name", "step__run__title")
MAX_LINKS = 10
"""Links to runs in a message."""
INBOX_TABS = ("open", "mine")


@require_GET
def approval_list(request: HtmxRequest) -> HttpResponse:
    """Show the open decisions, and the details of the most urgent one."""
    return render_inbox(request, None)


@require_GET
def approval_head(request: HtmxRequest) -> HttpResponse:
    context = {"counts": count_open_decisions(request), "tab": get_inbox_tab(request)}
    return render(request, "approvals/_head.html", context)


@require_GET
def approval_detail(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show one decision; to HTMX only its pane."""
    decision = get_visible_decision(request, pk)
    if wants_part(request):
        context = {"question": build_decision_detail(decision, request.user)}
        return render(request, "approvals/_detail.html", context)
    return render_inbox(request, build_decision_detail(decision, request.user))


@require_GET
def approval_answered(request: HtmxRequest) -> HttpResponse:
    """Show past decisions, newest first."""
    rows = Decision.objects.visible_to(request.user).exclude(answer="")
    query = get_search_text(request)
    rows = search_rows(rows, query, *SEARCH_FIELDS, "by__username", "reason")
    before = parse_whole_number(request.GET.get("before", ""))
    if before is not None:
        edge = rows.filter(pk=before).values_list("at", flat=True).first()
        rows = rows.filter(at__lt=edge) if edge else rows.none()
    found = select_decision_relations(rows).order_by("-at", "-pk")[
        : ANSWERED_PER_PAGE + 1
    ]
    answered = [DecisionRow(one) for one in found[:ANSWERED_PER_PAGE]]
    context = {
        "answered": answered,
        "q": query,
        "next": answered[-1].decision.pk if len(found) > ANSWERED_PER_PAGE else None,
        "counts": count_open_decisions(request),
        "tab": "answered",
    }
    page = "approvals/answered.html"
    return render_page_or_part(request, page, "approvals/_answered.html", context)


@require_http_methods(["GET", "POST"])
def approval_answer(request: HtmxRequest, pk: int) -> HttpResponse:
    """Save a decision; it is refused if it is late or about another call than shown.

    Without a page to return to, a refused form leaves this address in the browser:
    opened again, it is the decision.
    """
    decision = get_visible_decision(request, pk)
    if request.method == "GET":
        return redirect("approval-detail", pk)
    try:
        message = submit_answer(decision, request)
    except AlreadyDecided as error:
        question = build_decision_detail(
            get_visible_decision(request, pk), request.user
        )
        context = {
            "question": question,
            "reason": str(error),
            "counts": count_open_decisions(request),
        }
        return render(request, "approvals/decided.html", context, status=409)
    except ArgumentsRefused as error:
        if "next" in request.POST:
            keep_refused_answer(request, pk, error)
            return redirect(keep_list(request, get_safe_next_url(request)))
        question = build_decision_detail(decision, request.user)
        question = question.with_typed_answer(request.POST, error.errors)
        return render_inbox(request, question, mistake=str(WRONG_ARGUMENTS))
    except ShownCallChanged as error:
        question = build_decision_detail(decision, request.user)
        return render_inbox(request, question, mistake=str(error), status=409)
    except RunsError as error:
        messages.error(request, str(error))
        return redirect("approval-detail", pk)
    if "next" in request.POST:
        messages.success(request, message)
        return redirect(keep_list(request, get_safe_next_url(request)))
    link = link_runs([decision.step.run_id], request.user)
    messages.success(request, format_html("{} {}", message, link))
    return redirect("approval-list")


@require_http_methods(["GET", "POST"])
def approval_several(request: HtmxRequest) -> HttpResponse:
    """Show several calls with their arguments; POST decides all of them."""
    sent = request.POST if request.method == "POST" else request.GET
    picked = {parse_whole_number(pk) for pk in sent.getlist("pick")}
    mine = Decision.objects.answerable_by(request.user).filter(pk__in=picked - {None})
    rows = query_open_decisions(
        request.user, pk__in=mine.values("pk"), question="approval"
    )
    questions = [build_decision_detail(one, request.user) for one in rows[:MAX_LISTED]]
    for text in describe_left_out(request.user, picked, rows):
        messages.error(request, text)
    if request.method == "GET":
        context = {"questions": questions, "counts": count_open_decisions(request)}
        return render(request, "approvals/several.html", context)
    word = request.POST.get("answer", "")
    answered = []
    for question in questions:
        try:
            approve_or_reject(question.decision, request, word)
        except RunsError as error:
            tool = question.decision.step.tool
            messages.error(
                request,
                _("%(tool)s in run %(run)d: %(error)s")
                % {
                    "tool": tool,
                    "run": question.decision.step.run_id,
                    "error": error,
                },
            )
        else:
            answered.append(question.decision.step.run_id)
    if answered:
        result = describe_bulk_result(word, len(answered))
        links = link_runs(answered, request.user)
        messages.success(request, format_html("{} {}", result, links))
    return redirect("approval-list")


@require_GET
def approval_arguments(request: HtmxRequest, pk: int) -> HttpResponse:
    """Download the exact arguments, byte for byte."""
    arguments = get_visible_decision(request, pk).shown.get("tool_input")
    text = arguments if isinstance(arguments, str) else dump_readable_json(arguments)
    response = HttpResponse(
        text.encode("utf-8", "replace"), content_type="text/plain; charset=utf-8"
    )
    response["Content-Disposition"] = f'attachment; filename="arguments-{pk}.txt"'
    return response


@require_GET
def approval_decided(request: HtmxRequest, pk: int) -> HttpResponse:
    """Say who made a decision that this person was making; empty if nobody else did."""
    decision = get_visible_decision(request, pk)
    text = ""
    if decision.answer and decision.by != request.user:
        text = _("%(tool)s: %(reason)s What you typed was not used.") % {
            "tool": decision.step.tool,
            "reason": AlreadyDecided(decision),
        }
    return HttpResponse(text, content_type="text/plain; charset=utf-8")


@require_POST
def allowance_revoke(request: HtmxRequest, pk: int) -> HttpResponse:
    """Require approval for each call again."""
    mine = Decision.objects.answerable_by(request.user).filter(allowance__isnull=False)
    rows = Allowance.objects.filter(pk__in=mine.values("allowance"))
    allowance = get_object_or_404(rows.select_related("run"), pk=pk)
    revoke_allowance(allowance, by=request.user)
    messages.success(
        request,
        _("Calls of %(tool)s in run %(run)d require approval again.")
        % {"tool": allowance.tool, "run": allowance.run_id},
    )
    if "next" in request.POST:
        return redirect(keep_list(request, get_safe_next_url(request)))
    return redirect("approval-list")


WRONG_ARGUMENTS = gettext_lazy(
    "The arguments do not match the tool's schema. Correct them and submit again."
)


class AnswerMissing(RunsError):
    """Neither Approve nor Reject was selected."""

    def __init__(self) -> None:
        super().__init__(_("Nothing was saved. Select Approve or Reject."))


class OutcomeMissing(RunsError):
    """No outcome was selected."""

    def __init__(self) -> None:
        super().__init__(_("Nothing was saved. Select what happened to the call."))


def get_visible_decision(request: HtmxRequest, pk: int) -> Decision:
    """Return a decision that the user may see; 404 otherwise."""
    rows = Decision.objects.visible_to(request.user)
    return get_object_or_404(select_decision_relations(rows), pk=pk)


def render_inbox(
    request: HtmxRequest,
    question: DecisionDetail | None,
    *,
    mistake: str = "",
    status: int = 200,
) -> HttpResponse:
    """Show the list and one decision; without a selection, the first."""
    tab, query = get_inbox_tab(request), get_search_text(request)
    rows = query_open_decisions(request.user)
    rows = search_rows(rows, query, *SEARCH_FIELDS, "step__run__owner__username")
    mine = Decision.objects.answerable_by(request.user)
    if tab == "mine":
        rows = rows.filter(pk__in=mine.values("pk"))
    found = list(rows[:MAX_LISTED])
    may = set(
        mine.filter(pk__in=[one.pk for one in found]).values_list("pk", flat=True)
    )
    items = [DecisionRow(one, may_answer=one.pk in may) for one in found]
    is_chosen = question is not None
    if question is None and found and not wants_part(request):
        question = build_decision_detail(found[0], request.user)
    context = {
        "items": items,
        "question": question,
        "chosen": get_selected_id(request, question),
        "view": 2 if is_chosen else 1,
        "tab": tab,
        "q": query,
        "kept": build_inbox_query(tab, query),
        "counts": count_open_decisions(request),
        "mistake": mistake,
        "meanwhile": find_answered_meanwhile(request) if wants_part(request) else None,
    }
    if request.method == "POST":
        return render(request, "approvals/list.html", context, status=status)
    page = "approvals/list.html"
    return render_page_or_part(request, page, "approvals/_list.html", context)


def get_inbox_tab(request: HtmxRequest) -> str:
    tab = request.GET.get("tab", "")
    return tab if tab in INBOX_TABS else "open"


def build_inbox_query(tab: str, query: str) -> str:
    """Return the part of a URL that keeps the list as it is."""
    kept = {"tab": tab} if tab != "open" else {}
    if query:
        kept["q"] = query
    return f"?{urlencode(kept)}" if kept else ""


def get_selected_id(request: HtmxRequest, question: DecisionDetail | None) -> int:
    """Return the key of the decision next to the list."""
    if question is not None:
        return question.decision.pk
    return parse_whole_number(request.GET.get("chosen", "")) or 0


def find_answered_meanwhile(request: HtmxRequest) -> Decision | None:
    """Return the decision next to the list if it has been made by now."""
    pk = get_selected_id(request, None)
    rows = Decision.objects.visible_to(request.user).filter(pk=pk).exclude(answer="")
    return rows.select_related("by").first()


def count_open_decisions(request: HtmxRequest) -> dict[str, int]:
    """Count the open decisions, and those that this user can make."""
    found = Decision.objects.visible_to(request.user).open()
    mine = Decision.objects.answerable_by(request.user).open()
    return {"open": found.count(), "mine": mine.count()}


def submit_answer(decision: Decision, request: HtmxRequest) -> str:
    """Save the decision; return the message for the user."""
    word, tool = request.POST.get("answer", ""), decision.step.tool
    if decision.question == Decision.Question.OUTCOME:
        if not word:
            raise OutcomeMissing
        settle_outcome(
            decision,
            by=request.user,
            answer=word,
            result=request.POST.get("reason", ""),
            shown=request.POST.get("shown"),
        )
        if word == Decision.Answer.FAIL:
            return _("Decision about %(tool)s saved. The run has failed.") % {
                "tool": tool
            }
        return _("Decision about %(tool)s saved. The run continues.") % {"tool": tool}
    approve_or_reject(decision, request, word)
    decision.refresh_from_db(fields=["edited_input"])
    if word == "reject":
        return _("%(tool)s rejected. The model is notified and the run continues.") % {
            "tool": tool
        }
    if "alike" in request.POST:
        run = decision.step.run_id
        return _(
            "All calls of %(tool)s in run %(run)d are approved. The run continues."
        ) % {"tool": tool, "run": run}
    if decision.edited_input is not None:
        return _("%(tool)s approved with the edited arguments. The run continues.") % {
            "tool": tool
        }
    return _("%(tool)s approved. The run continues.") % {"tool": tool}


def describe_left_out(
    user: User, picked: set[int | None], loaded: QuerySet[Decision]
) -> list[str]:
    """Say of the selected calls that are not decided together why they are not."""
    found = Decision.objects.visible_to(user).filter(pk__in=picked - {None}).distinct()
    decided, offered = found.exclude(answer="").count(), loaded.count()
    refused, missing = found.count() - decided - offered, len(picked) - found.count()
    late = offered - MAX_LISTED
    reasons = (
        (
            decided,
            ngettext(
                "%(count)d call was already decided.",
                "%(count)d calls were already decided.",
                decided,
            ),
        ),
        (
            refused,
            ngettext(
                "You cannot approve or reject %(count)d of the selected calls.",
                "You cannot approve or reject %(count)d of the selected calls.",
                refused,
            ),
        ),
        (
            missing,
            ngettext(
                "%(count)d selected call was not found.",
                "%(count)d selected calls were not found.",
                missing,
            ),
        ),
        (
            late,
            ngettext(
                "%(count)d call stays open: at most %(most)d are decided at once.",
                "%(count)d calls stay open: at most %(most)d are decided at once.",
                late,
            ),
        ),
    )
    return [text % {"count": n, "most": MAX_LISTED} for n, text in reasons if n > 0]


def describe_bulk_result(word: str, done: int) -> str:
    if word == "approve":
        text = ngettext(
            "%(count)d call approved. The run continues.",
            "%(count)d calls approved. The runs continue.",
            done,
        )
    else:
        text = ngettext(
            "%(count)d call rejected. The run continues.",
            "%(count)d calls rejected. The runs continue.",
            done,
        )
    return text % {"count": done}


def link_runs(run_ids: Iterable[int], user: User) -> SafeString:
    """Return links to runs as `user` may open them; some, and all decisions."""
    some = list(dict.fromkeys(run_ids))
    own = Run.objects.visible_to(user).filter(pk__in=some[:MAX_LINKS])
    visible = set(own.values_list("pk", flat=True))
    links = []
    for pk in some[:MAX_LINKS]:
        page = "run-detail" if pk in visible else "run-read-only"
        links.append((reverse(page, args=[pk]), _("Open run %(run)s") % {"run": pk}))
    if len(some) > MAX_LINKS:
        links.append((reverse("approval-answered"), _("All decisions")))
    return format_html_join(" · ", '<a href="{}">{}</a>', links)


def approve_or_reject(decision: Decision, request: HtmxRequest, word: str) -> None:
    """Approve or reject; raise `AnswerMissing` if `word` is neither."""
    sent = request.POST
    shown = sent.get(f"shown-{decision.pk}", sent.get("shown"))
    reason = sent.get("reason", "")
    if word == "reject":
        reject_step(decision, by=request.user, reason=reason, shown=shown)
    elif word == "approve":
        approve_step(
            decision,
            by=request.user,
            edited_input=parse_edited_input(decision, sent),
            reason=reason,
            alike="alike" in sent,
            shown=shown,
        )
    else:
        raise AnswerMissing
