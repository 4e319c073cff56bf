"""Providers: the list, the form, the connection test, the models."""

import os
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.contrib import messages
from django.db.models import Count, Q
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from runs.forms.provider import ProviderForm
from runs.htmx import HtmxRequest, page_or_part
from runs.llm.registry import KINDS
from runs.models import Provider
from runs.services.find_servers import find_servers
from runs.services.open_provider import test_provider
from runs.services.refresh_models import refresh_models


@require_GET
def provider_list(request: HtmxRequest) -> HttpResponse:
    """Show the providers one may use."""
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
    kinds = {name: kind.title for name, kind in KINDS.items()}
    context = {"providers": providers, "away": away, "kinds": kinds}
    return render(request, "providers/list.html", context)


@require_http_methods(["GET", "POST"])
def provider_create(request: HtmxRequest) -> HttpResponse:
    """Ask for a new provider; the address may come from what was found."""
    blank = Provider(owner=request.user)
    offered = ("name", "kind", "base_url", "key_env", "default_model")
    initial = {name: request.GET[name] for name in offered if name in request.GET}
    form = ProviderForm(request.POST or None, instance=blank, initial=initial)
    if form.is_valid():
        provider = form.save()
        messages.success(request, f"{provider} is saved. Test the connection now.")
        return redirect("provider-detail", pk=provider.pk)
    context = {"form": form, "provider": blank, "found_keys": found_keys(blank)}
    return render(request, "providers/form.html", context)


@require_http_methods(["GET", "POST"])
def provider_detail(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show one provider; its owner can change it."""
    provider = get_object_or_404(Provider.objects.visible_to(request.user), pk=pk)
    if not Provider.objects.editable_by(request.user).filter(pk=pk).exists():
        return render(request, "providers/detail.html", shown(provider))
    form = ProviderForm(request.POST or None, instance=provider)
    if request.method == "POST" and form.is_valid():
        form.save()
        messages.success(request, f"{provider} is saved.")
        return redirect("provider-detail", pk=pk)
    if form.errors:  # the head of the page keeps the stored name
        provider = Provider.objects.get(pk=pk)
    return render(request, "providers/form.html", shown(provider) | {"form": form})


@require_POST
def provider_test(request: HtmxRequest, pk: int) -> HttpResponse:
    """Ask the server for its models, and say what came."""
    provider = get_object_or_404(Provider.objects.editable_by(request.user), pk=pk)
    outcome = test_provider(provider)
    if outcome.ok:
        refresh_models(provider, outcome.models)
    form = ProviderForm(instance=provider)
    context = shown(provider) | {"outcome": outcome, "form": form}
    return page_or_part(request, "providers/form.html", "providers/_test.html", context)


@require_GET
def found_servers(request: HtmxRequest) -> HttpResponse:
    """Show servers on this machine that answer now."""
    visible = Provider.objects.visible_to(request.user)
    known = {origin_of(url) for url in visible.values_list("base_url", flat=True)}
    servers = [one for one in find_servers() if origin_of(one.base_url) not in known]
    context = {"servers": servers, "asked": True}
    return page_or_part(
        request, "providers/found.html", "providers/_found.html", context
    )


def origin_of(base_url: str) -> str:
    """Return the address without its path: one server may speak several formats."""
    return "/".join(base_url.split("/")[:3])


def shown(provider: Provider) -> dict[str, Any]:
    """Return what the page of a provider shows."""
    kind = KINDS.get(provider.kind)
    return {
        "provider": provider,
        "kind_title": kind.title if kind else provider.kind,
        "models": provider.models.all(),
        "agents": provider.agents.filter(archived_at=None).order_by("name")[:20],
        "has_env_key": provider.may_read(provider.key_env)
        and bool(os.environ.get(provider.key_env)),
    }


class FoundKey(NamedTuple):
    """A key in the environment, and the form it fills in."""

    title: str
    variable: str
    query: str


def found_keys(provider: Provider) -> list[FoundKey]:
    """Return the kinds whose key is set where the web runs; never the keys."""
    return [
        FoundKey(
            kind.title,
            kind.env_key,
            urlencode({"name": kind.title, "kind": name, "key_env": kind.env_key}),
        )
        for name, kind in KINDS.items()
        if provider.may_read(kind.env_key) and os.environ.get(kind.env_key)
    ]
