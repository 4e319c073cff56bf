"""A person's e-mail notifications, and the page of a link that answers an approval."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from runs.forms.notifications import NotificationsForm
from runs.htmx import HtmxRequest
from runs.models import ApprovalLink, Decision, Notification
from runs.services.approvals.by_link import (
    LinkNotValid,
    answer_by_link,
    find_approval_link,
)
from runs.services.errors import RunsError
from runs.services.notifications.send import TooManyTests, request_test_mail
from runs.views.approvals.details import (
    build_decision_detail,
    select_decision_relations,
)
from runs.views.run_actions.share import PRIVATE_HEADERS

MAX_SHOWN = 20
SHOWN_FIELDS = ("kind", "status", "error", "created_at", "run_id", "schedule__name")
ANSWERS = ("approve", "reject")


@require_http_methods(["GET", "POST"])
def notification_settings(request: HtmxRequest) -> HttpResponse:
    sent_form = request.POST if request.method == "POST" else None
    form = NotificationsForm(request.user, sent_form)
    if form.is_valid():
        form.save()
        messages.success(request, _("E-mail notifications saved."))
        return redirect("notification-settings")
    mine = Notification.objects.filter(user=request.user)
    # Runs are large, and the page shows only their numbers.
    sent = mine.select_related("schedule").only(*SHOWN_FIELDS)
    context = {
        "form": form,
        "is_on": settings.EMAIL_IS_ON,
        "sent": sent.order_by("-pk")[:MAX_SHOWN],
        "address": form.initial["email"],
    }
    return render(request, "notifications/settings.html", context)


@require_POST
def notification_test(request: HtmxRequest) -> HttpResponse:
    if not settings.EMAIL_IS_ON:
        messages.error(request, _("This site does not send e-mail. Nothing was sent."))
    elif not request.user.email:
        messages.error(request, _("Enter and save an e-mail address first."))
    else:
        try:
            request_test_mail(request.user)
        except TooManyTests as refused:
            messages.error(request, str(refused))
            return redirect("notification-settings")
        messages.success(
            request,
            _("A test message is on its way to %(address)s.")
            % {"address": request.user.email},
        )
    return redirect("notification-settings")


@login_not_required
@never_cache
@require_http_methods(["GET", "POST"])
def approval_link(request: HttpRequest, token: str) -> HttpResponse:
    """Show the exact call of a link; its form answers, once.

    It shows no menus: whoever is signed in here may be another person.
    """
    context: dict[str, Any] = {"frame": None, "messages": []}
    mistake, status = "", 200
    if request.method == "POST":
        word = request.POST.get("answer", "")
        try:
            if word not in ANSWERS:
                raise RunsError(_("Nothing was saved. Select Approve or Reject."))
            link = answer_by_link(
                token,
                approve=word == "approve",
                shown=request.POST.get("shown", ""),
                reason=request.POST.get("reason", ""),
            )
        except LinkNotValid:
            pass  # said below
        except RunsError as refused:
            mistake = str(refused)
        else:
            context |= {"done": word, "tool": link.decision.step.tool}
            return render_link_page(request, context)
    found = find_approval_link(token)
    if found is None:
        status = 404
    else:
        context |= {"link": found, "mistake": mistake, **build_link_context(found)}
    return render_link_page(request, context, status=status)


def build_link_context(link: ApprovalLink) -> dict[str, Any]:
    decision = select_decision_relations(Decision.objects.all()).get(
        pk=link.decision_id
    )
    return {"question": build_decision_detail(decision, link.user)}


def render_link_page(
    request: HttpRequest, context: dict[str, Any], *, status: int = 200
) -> HttpResponse:
    page = render(request, "notifications/approve.html", context, status=status)
    for name, value in PRIVATE_HEADERS.items():
        page[name] = value
    return page
