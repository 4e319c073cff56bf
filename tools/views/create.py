"""Creating a tool of one kind."""

from typing import cast

from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from tools.definition.save import save_tool
from tools.forms.kinds import TOOL_FORMS
from tools.forms.open_form import open_tool_form
from tools.models import Tool
from tools.services.try_tool import assign_trials
from tools.views.page import render_tool_form
from tools.views.trial_pane import open_trial_pane, read_draft, reopen_trial_pane


@require_http_methods(["GET", "POST"])
def tool_create(request: HttpRequest, kind: str) -> HttpResponse:
    """Show the empty form of a kind; create the tool."""
    user = require_creator(request)
    require_kind(kind)
    draft = read_draft(request)
    form = open_tool_form(kind, user=user, data=request.POST or None)
    if request.method == "POST" and form.is_valid():
        tool: Tool = form.save(commit=False)
        tool.owner = user
        save_tool(tool, by=user, note="Created", groups=form.cleaned_data["groups"])
        assign_trials(tool, draft, by=user)
        messages.success(request, _("Created %(tool)s.") % {"tool": tool.name})
        return redirect("tool-detail", tool.slug)
    blank = Tool(kind=kind, owner=user)
    url = reverse("tool-create-try", args=[kind])
    if request.method == "POST":
        pane = reopen_trial_pane(request, form, blank, url=url, user=user, draft=draft)
    else:
        pane = open_trial_pane(blank, url=url, user=user, draft=draft)
    return render_tool_form(request, form, pane, stored=blank)


def require_creator(request: HttpRequest) -> User:
    """Return who asks; raise `PermissionDenied` if they may not create tools."""
    user = cast(User, request.user)
    if not (user.is_staff and user.has_perm("tools.add_tool")):
        raise PermissionDenied
    return user


def require_kind(kind: str) -> None:
    """Raise `Http404` for a kind that is not created in a form."""
    if kind not in TOOL_FORMS or not TOOL_FORMS[kind].can_be_created:
        raise Http404
