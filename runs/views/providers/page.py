"""The list of providers, the form, the connection test and local servers."""

from copy import copy
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.models import User
from django.db.models import Count, Q
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from runs.forms.provider import ProviderForm
from runs.htmx import HtmxRequest, render_page_or_part
from runs.llm.key_variables import read_key_variable
from runs.llm.presets import PRESETS
from runs.llm.registry import PROVIDER_KINDS
from runs.models import Provider
from runs.services.agents.used_by import list_using_agents
from runs.services.providers.client import (
    ProviderTest,
    check_connection,
    run_provider_test,
)
from runs.services.providers.discover import discover_local_servers
from runs.services.providers.outages import list_open_outages
from runs.ui.kind_labels import get_provider_kind_title, list_provider_kind_choices
from runs.ui.list_search import get_search_text, search_rows
from runs.views.lists.actions import build_definition_choices
from runs.views.lists.page import render_list


@require_GET
def provider_list(request: HtmxRequest) -> HttpResponse:
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
    query = get_search_text(request)
    providers = search_rows(
        providers, query, "name", "slug", "base_url", "owner__username"
    )
    kinds = dict(list_provider_kind_choices())
    notes = list_open_outages(providers, request.user)
    return render_list(
        request,
        "provider",
        rows=[(provider, notes.get(provider.pk, [])) for provider in providers],
        away=away,
        q=query,
        kinds=kinds,
        **build_definition_choices(Provider, request.user, away=away),
    )


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
    context = build_provider_context(blank, request.user) | {"form": form}
    return render(request, "providers/form.html", context)


def list_provider_presets() -> list[tuple[str, str]]:
    """Return the title of each preset, and the query that fills the form with it."""
    return [
        (
            one.title,
            urlencode(
                {
                    "name": one.title,
                    "kind": one.kind,
                    "base_url": one.base_url,
                    "key_env": one.env_key,
                }
            ),
        )
        for one in PRESETS
    ]


@require_http_methods(["GET", "POST"])
def provider_detail(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show one provider; its owner can change it."""
    provider = get_object_or_404(Provider.objects.visible_to(request.user), pk=pk)
    if not Provider.objects.editable_by(request.user).filter(pk=pk).exists():
        context = build_provider_context(provider, request.user)
        return render(request, "providers/detail.html", context)
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
        build_provider_context(provider, request.user) | {"form": form},
    )


@require_POST
def provider_test(request: HtmxRequest, pk: int) -> HttpResponse:
    """Request the models of the server with the typed values."""
    provider = get_object_or_404(Provider.objects.editable_by(request.user), pk=pk)
    return show_test_result(request, provider)


@require_POST
def provider_test_new(request: HtmxRequest) -> HttpResponse:
    """The same before the provider is saved."""
    return show_test_result(request, Provider(owner=request.user))


def show_test_result(request: HtmxRequest, provider: Provider) -> HttpResponse:
    """Test what is typed and show the result; nothing is saved."""
    form = ProviderForm(request.POST, instance=copy(provider))
    has_withheld_secrets = is_stored = False
    if errors := form.list_connection_errors():
        outcome = ProviderTest(ok=False, message=" ".join(errors))
    else:
        typed, has_withheld_secrets = form.build_typed_provider()
        is_stored = provider.pk is not None and (
            typed.connection_settings == provider.connection_settings
        )
        outcome = run_provider_test(typed) if is_stored else check_connection(typed)
    context = build_provider_context(provider, request.user) | {
        "form": form,
        "outcome": outcome,
        "is_stored": is_stored,
        "has_withheld_secrets": has_withheld_secrets,
    }
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


def build_provider_context(provider: Provider, user: User) -> dict[str, Any]:
    """Return the context of a provider's page, also before it is saved."""
    if provider.pk is None:
        return {
            "provider": provider,
            "models": [],
            "found_keys": list_environment_keys(provider),
            "presets": list_provider_presets(),
        }
    return {
        "provider": provider,
        "outages": list_open_outages([provider], user).get(provider.pk, []),
        "kind_title": get_provider_kind_title(provider.kind),
        "models": provider.models.all(),
        "used_by": list_using_agents(provider, user),
        "has_env_key": provider.may_read(provider.key_env)
        and bool(read_key_variable(provider.key_env)),
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
        if provider.may_read(kind.env_key) and read_key_variable(kind.env_key)
    ]
