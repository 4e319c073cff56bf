"""Creating a tool from a request that a person pastes."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from tools.forms.open_form import open_tool_form
from tools.models import Tool
from tools.samples.fetch_document import fetch_openapi_document
from tools.samples.form import SampleForm
from tools.views.create import require_creator
from tools.views.page import render_tool_form
from tools.views.trial_pane import open_trial_pane, read_draft


@require_http_methods(["GET", "POST"])
def tool_from_request(request: HttpRequest) -> HttpResponse:
    """Show where to paste; then the form of the tool, which is not created yet.

    The URL of an OpenAPI document leads to its operations.
    """
    user = require_creator(request)
    form = SampleForm(request.POST or None)
    if request.method != "POST" or not form.is_valid():
        return render(request, "tools/paste.html", {"form": form})
    if form.plain_url:
        upload = fetch_openapi_document(form.plain_url, by=user)
        if upload is not None:
            return redirect("admin:tools_tool_import_choice", upload.pk)
    draft = form.draft
    draft.tool.owner = user
    url = reverse("tool-create-try", args=["http"])
    pane = open_trial_pane(
        draft.tool, url=url, user=user, values=draft.values, draft=read_draft(request)
    )
    typed = open_tool_form("http", user=user, tool=draft.tool)
    blank = Tool(kind="http", owner=user)
    return render_tool_form(request, typed, pane, stored=blank, left_out=draft.left_out)
