"""Testing a tool from its page, with the typed values."""

from typing import Any, cast

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST

from tools.forms.open_form import open_tool_form
from tools.forms.tool import ToolForm
from tools.models import Tool
from tools.ui.labels import can_edit_tool, can_test_tools
from tools.views.browse import show_tool
from tools.views.create import require_creator, require_kind
from tools.views.earlier_trials import load_trial
from tools.views.page import find_visible_tool, render_tool_form
from tools.views.trial_pane import TrialPane, read_draft, run_trial

UNNAMED = "new_tool"


@require_POST
def try_saved_tool(request: HttpRequest, slug: str) -> HttpResponse:
    """Call a tool as its form is typed; without the form, as it is saved.

    Typed values are those of people who may save them.
    """
    user = cast(User, request.user)
    tool = find_visible_tool(user, slug)
    is_editor = can_edit_tool(tool, user)
    if not (is_editor or can_test_tools(user)):
        raise PermissionDenied
    url = reverse("tool-try", args=[slug])
    typed: ToolForm | None = None
    if is_editor and "name" in request.POST:  # the fields of the form came along
        other = find_visible_tool(user, slug)
        typed = open_tool_form(tool.kind, user=user, tool=other, data=request.POST)
    loaded = load_trial(request.POST, tool, user)
    pane = run_trial(request, typed, tool, url=url, loaded=loaded)
    if not is_editor and not request.headers.get("HX-Request"):
        return show_tool(request, tool, pane)
    form = typed or open_tool_form(tool.kind, user=user, tool=tool)
    return render_trial(request, pane, form, stored=tool)


@require_POST
def try_new_tool(request: HttpRequest, kind: str) -> HttpResponse:
    """Call a tool that is not created yet."""
    user = require_creator(request)
    require_kind(kind)
    blank = Tool(kind=kind, owner=user)
    draft = read_draft(request)
    data = request.POST.copy()
    data["name"] = data.get("name", "").strip() or UNNAMED  # no call needs one
    new = Tool(kind=kind, owner=user)
    typed = open_tool_form(kind, user=user, tool=new, data=data)
    url = reverse("tool-create-try", args=[kind])
    loaded = load_trial(request.POST, blank, user, draft)
    pane = run_trial(request, typed, blank, url=url, draft=draft, loaded=loaded)
    typed.data = request.POST  # shows the name as it is typed
    return render_trial(request, pane, typed, stored=blank)


def render_trial(
    request: HttpRequest, pane: TrialPane, form: ToolForm, *, stored: Any
) -> HttpResponse:
    """Return the pane for htmx, and otherwise the page as it is typed."""
    if request.headers.get("HX-Request"):
        return render(request, "tools/_try.html", {"pane": pane, "tool": stored})
    seen = request.POST.get("seen")
    return render_tool_form(request, form, pane, stored=stored, seen=seen)
