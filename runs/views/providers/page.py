"""The list of providers, the form, the connection test and local servers."""

import os
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.contrib import messages
from django.db.models import Count, Q
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from runs.forms.provider import ProviderForm
from runs.htmx import HtmxRequest, render_page_or_part
from runs.llm.registry import PROVIDER_KINDS
from runs.models import Provider
from runs.services.providers.client import run_provider_test
from runs.services.providers.discover import discover_local_servers
from runs.services.providers.refresh_models import refresh_models
from runs.ui.kind_labels import (
    get_provider_kind_title,
    list_provider_kind_choices,
)


@require_GET
def provider_list(request: HtmxRequest) -> HttpResponse:
    """Show the providers visible to the user."""
    away = request.GET.get("archived") == "1"
    providers = (
        Provider.objects.visible_to(request.user)
        .filter(archived_at__isnull=not away)
        .select_related("owner")
        .annotate(
            agent_count=Count(
                "agents", filter=Q(agents__archived_at=None), distinct=True
            ),
            model_count=Count("models", distinct=True),
        )
        .order_by("name")
    )
    kinds = dict(list_provider_kind_choices())
    context = {"providers": providers, "away": away, "kinds": kinds}
    return render(request, "providers/list.html", context)


@require_http_methods(["GET", "POST"])
def provider_create(request: HtmxRequest) -> HttpResponse:
    """Create a provider; the query may prefill the form."""
    blank = Provider(owner=request.user)
    offered = ("name", "kind", "base_url", "key_env", "default_model")
    initial = {name: request.GET[name] for name in offered if name in request.GET}
    form = ProviderForm(request.POST or None, instance=blank, initial=initial)
    if form.is_valid():
        provider = form.save()
        messages.success(
            request,
            _("Provider %(name)s created. Test the connection now.")
            % {"name": provider},
        )
        return redirect("provider-detail", pk=provider.pk)
    context = {
        "form": form,
        "provider": blank,
        "found_keys": list_environment_keys(blank),
    }
    return render(request, "providers/form.html", context)


@require_http_methods(["GET", "POST"])
def provider_detail(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show one provider; its owner can change it."""
    provider = get_object_or_404(Provider.objects.visible_to(request.user), pk=pk)
    if not Provider.objects.editable_by(request.user).filter(pk=pk).exists():
        return render(
            request, "providers/detail.html", build_provider_context(provider)
        )
    form = ProviderForm(request.POST or None, instance=provider)
    if request.method == "POST" and form.is_valid():
        form.save()
        messages.success(request, _("Provider %(name)s saved.") % {"name": provider})
        return redirect("provider-detail", pk=pk)
    if form.errors:  # the head of the page keeps the stored name
        provider = Provider.objects.get(pk=pk)
    return render(
        request,
        "providers/form.html",
        build_provider_context(provider) | {"form": form},
    )


@require_POST
def provider_test(request: HtmxRequest, pk: int) -> HttpResponse:
    """Request the models of the server and show the result."""
    provider = get_object_or_404(Provider.objects.editable_by(request.user), pk=pk)
    outcome = run_provider_test(provider)
    if outcome.ok:
        refresh_models(provider, outcome.models)
    form = ProviderForm(instance=provider)
    context = build_provider_context(provider) | {"outcome": outcome, "form": form}
    return render_page_or_part(
        request, "providers/form.html", "providers/_test.html", context
    )


@require_GET
def provider_found(request: HtmxRequest) -> HttpResponse:
    """Show model servers that respond on this machine."""
    visible = Provider.objects.visible_to(request.user)
    known = {
        get_server_origin(url) for url in visible.values_list("base_url", flat=True)
    }
    servers = [
        one
        for one in discover_local_servers()
        if get_server_origin(one.base_url) not in known
    ]
    context = {"servers": servers, "asked": True}
    return render_page_or_part(
        request, "providers/found.html", "providers/_found.html", context
    )


def get_server_origin(base_url: str) -> str:
    """Return the URL without its path: one server may support several formats."""
    return "/".join(base_url.split("/")[:3])


def build_provider_context(provider: Provider) -> dict[str, Any]:
    """Return the context of a provider's page."""
    return {
        "provider": provider,
        "kind_title": get_provider_kind_title(provider.kind),
        "models": provider.models.all(),
        "agents": provider.agents.filter(archived_at=None).order_by("name")[:20],
        "has_env_key": provider.may_read(provider.key_env)
        and bool(os.environ.get(provider.key_env)),
    }


class EnvironmentKey(NamedTuple):
    """An API key in the environment, with the query that prefills the form."""

    title: str
    variable: str
    query: str


def list_environment_keys(provider: Provider) -> list[EnvironmentKey]:
    """Return the kinds whose key is set in this process; never the keys."""
    return [
        EnvironmentKey(
            title := get_provider_kind_title(name),
            kind.env_key,
            urlencode({"name": title, "kind": name, "key_env": kind.env_key}),
        )
        for name, kind in PROVIDER_KINDS.items()
        if provider.may_read(kind.env_key) and os.environ.get(kind.env_key)
    ]
