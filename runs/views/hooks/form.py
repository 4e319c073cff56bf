"""The form of a new or stored incoming webhook, with a preview on a sample."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from runs.forms.hook import HookForm
from runs.htmx import HtmxRequest, render_page_or_part
from runs.models import Agent, Hook
from runs.services.hooks.manage import rotate_hook_secret
from runs.services.spec.freeze import variables_of_agent
from runs.views.hooks.page import get_visible_hook
from runs.views.webhooks import store_new_secret
from runs.whole_number import parse_whole_number
from tools.secrets import unseal


@require_http_methods(["GET", "POST"])
def hook_create(request: HtmxRequest) -> HttpResponse:
    """Create an incoming webhook of the agent in the query; without one, offer some."""
    usable = Agent.objects.usable_by(request.user)
    chosen = parse_whole_number(request.GET.get("agent", ""))
    if chosen is None:
        agents = usable.order_by("name").select_related("owner")
        return render(request, "hooks/agent.html", {"agents": agents})
    agent = get_object_or_404(usable, pk=chosen)
    hook = Hook(owner=request.user, agent=agent, name=agent.name)
    form = HookForm(list_hook_variables(agent), request.POST or None, instance=hook)
    if form.is_valid():
        made = form.save()
        store_new_secret(request, made, unseal(made.sealed_secret))
        messages.success(
            request, _("Incoming webhook %(name)s created.") % {"name": made}
        )
        return redirect("hook-detail", pk=made.pk)
    context = {"form": form, "agent": agent, "hook": None, **form.preview()}
    return render(request, "hooks/form.html", context)


@require_http_methods(["GET", "POST"])
def hook_edit(request: HtmxRequest, pk: int) -> HttpResponse:
    """Edit an incoming webhook; its agent cannot be changed."""
    hook = get_visible_hook(request, pk)
    form = HookForm(
        list_hook_variables(hook.agent), request.POST or None, instance=hook
    )
    if form.is_valid():
        form.save()
        if secret := form.cleaned_data["secret"]:
            rotate_hook_secret(hook, secret)
        messages.success(
            request, _("Incoming webhook %(name)s saved.") % {"name": hook}
        )
        return redirect("hook-detail", pk=pk)
    stored = get_visible_hook(request, pk)  # the head of the page keeps its name
    context = {"form": form, "agent": hook.agent, "hook": stored, **form.preview()}
    return render(request, "hooks/form.html", context)


@require_POST
def hook_preview(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show the inputs that the sample of the unsaved form gives for an agent."""
    rows = Agent.objects.usable_by(request.user) | Agent.objects.filter(
        hooks__in=Hook.objects.visible_to(request.user)
    )
    agent = get_object_or_404(rows.distinct(), pk=pk)
    form = HookForm(list_hook_variables(agent), request.POST, instance=Hook())
    context = {"agent": agent, **form.preview()}
    return render_page_or_part(
        request, "hooks/preview.html", "hooks/_preview.html", context
    )


def list_hook_variables(agent: Agent) -> tuple[str, ...]:
    """Return the inputs of what would run: the version, or the draft."""
    version = agent.versions.select_related("spec").first()
    return variables_of_agent(agent, version)
