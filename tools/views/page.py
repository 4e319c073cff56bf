"""The page of one tool: its form, and the pane that tests it."""

from collections.abc import Iterator, Sequence
from typing import Any, cast

from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from tools.admin.cells import render_arguments_table
from tools.admin.mcp import render_tool_server
from tools.definition.save import save_tool, serialize_definition
from tools.forms.open_form import open_tool_form
from tools.forms.tool import ToolForm
from tools.models import Tool
from tools.ui.form_groups import build_form_groups
from tools.ui.labels import (
    KIND_LABELS,
    can_edit_tool,
    can_test_tools,
    find_call_flaw,
)
from tools.ui.revision_diff import OtherSave, find_other_save
from tools.usage import with_usage
from tools.views.browse import show_tool
from tools.views.earlier_trials import load_trial
from tools.views.trial_pane import TrialPane, open_trial_pane, reopen_trial_pane

WORDS_TOO_FEW, WORDS_TOO_MANY = 8, 60
"""Between them, a description has a good length to select the tool by."""


@require_http_methods(["GET", "POST"])
def tool_detail(request: HttpRequest, slug: str) -> HttpResponse:
    """Show a tool, with its form to those who may edit it; save the form."""
    user = cast(User, request.user)
    tool = find_visible_tool(user, slug)
    if not can_edit_tool(tool, user):
        if request.method == "POST":
            raise PermissionDenied
        return show_tool(request, tool, open_stored_pane(request, tool))
    form = open_tool_form(tool.kind, user=user, tool=tool, data=request.POST or None)
    other: OtherSave | None = None
    if request.method == "POST":
        other = refuse_stale_form(form, request.POST.get("seen", ""))
        if form.is_valid():
            saved = save_tool_form(form, by=user)
            messages.success(request, _("Saved %(tool)s.") % {"tool": saved.name})
            return redirect("tool-detail", saved.slug)
    fresh = find_visible_tool(user, slug)  # a refused form has changed the other one
    pane: TrialPane | None
    if request.method == "POST":
        url = reverse("tool-try", args=[slug])
        pane = reopen_trial_pane(request, form, fresh, url=url, user=user)
    else:
        pane = open_stored_pane(request, fresh)
    return render_tool_form(request, form, pane, stored=fresh, other=other)


def open_stored_pane(request: HttpRequest, tool: Tool) -> TrialPane | None:
    """Return the pane of the stored tool; None for people who may not test it."""
    user = cast(User, request.user)
    if not (can_test_tools(user) or can_edit_tool(tool, user)):
        return None
    loaded = load_trial(request.GET, tool, user)
    url = reverse("tool-try", args=[tool.slug])
    return open_trial_pane(tool, url=url, user=user, loaded=loaded)


def find_visible_tool(user: User, slug: str) -> Any:
    """Return a tool that `user` may see, with its usage; raise `Http404`."""
    rows = Tool.objects.visible_to(user).select_related(
        "owner", "credential", "mcp_server", "approvers"
    )
    return get_object_or_404(with_usage(rows), slug=slug)


def refuse_stale_form(form: ToolForm, seen: str) -> OtherSave | None:
    """Refuse once to overwrite what somebody else saved since the form was opened."""
    if not form.is_valid():
        return None
    other = find_other_save(form.instance, seen, serialize_definition(form.instance))
    if other is not None:
        message = _("Somebody saved this tool since you opened it.")
        form.add_error(None, message)
    return other


def iter_changed_inputs(form: ToolForm) -> Iterator[str]:
    """Yield the names of inputs whose typed values differ from the stored ones."""
    for name in form.changed_data:
        typed, stored = form[name].value(), form[name].initial
        is_text = isinstance(typed, str) and isinstance(stored, str)
        if is_text and typed.replace("\r\n", "\n") == stored.replace("\r\n", "\n"):
            continue  # browsers change line breaks
        yield f"{name}-shape" if name == "args_schema" else name


def save_tool_form(form: ToolForm, *, by: User) -> Tool:
    tool: Tool = form.save(commit=False)
    given = form.cleaned_data
    return save_tool(
        tool, by=by, note=given.get("note", ""), groups=given.get("groups")
    )


def render_tool_form(
    request: HttpRequest,
    form: ToolForm,
    pane: TrialPane | None,
    *,
    stored: Any,
    left_out: Sequence[str] | None = None,
    seen: str | None = None,
    other: OtherSave | None = None,
) -> HttpResponse:
    """Show the two panes; `stored` is the tool as it is saved, without a key if new.

    `left_out` are the secrets that a pasted request had; None if nothing was pasted.
    `seen` is the revision from which the form was typed; None for the stored one.
    `other` is what somebody saved meanwhile.
    """
    tool: Any = form.instance
    notes = {
        "arguments_display": render_arguments_table(tool),
        "server_display": render_tool_server(tool),
    }
    shown = {name: note for name, note in notes.items() if name in form.kind_fields}
    words = len(str(form["description"].value() or "").split())
    if pane:
        pane.join_form()
    context = {
        "tool": stored,
        "seen": stored.revision if seen is None else seen,
        "form": form,
        "other": other,
        "changed": " ".join(iter_changed_inputs(form)) if form.errors else "",
        "groups": build_form_groups(form, notes=shown),
        "pane": pane,
        "is_pasted": left_out is not None,
        "left_out": left_out,
        "kind_word": KIND_LABELS[form.kind],
        "call_flaw": find_call_flaw(stored) if stored.pk else "",
        "agent_count": stored.used_by.count() if stored.pk else 0,
        "word_count": words,
        "word_range": (WORDS_TOO_FEW, WORDS_TOO_MANY),
    }
    return render(request, "tools/form.html", context)
