"""Providers in the API: state, models and settings; keys are write-only."""

from typing import Annotated, Any

from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse, QueryDict
from pydantic import Field

from runs.api.bodies import EmptyBody
from runs.api.definitions.common import (
    Definition,
    DefinitionShape,
    Name,
    SharingBody,
    build_common_routes,
    definition_json,
    save_groups,
    share_definition,
    shared_group_ids,
)
from runs.api.dispatch import json_response
from runs.api.problems import form_problem
from runs.api.queries import Page, PageQuery, paginate_by_id
from runs.api.route import Route
from runs.api.shapes import ErrorShape, Shape
from runs.forms.provider import ProviderForm
from runs.models import Provider, ProviderModel
from runs.serializers import Json, format_timestamp
from runs.services.providers.client import run_provider_test
from runs.services.providers.outages import OpenOutage, list_open_outages


class OutageShape(Shape):
    """Since when and why a provider is unavailable."""

    since: str
    error: ErrorShape
    next_attempt_at: str | None
    """Null while a run tests the provider."""
    waiting_runs: int
    """Number of your runs that wait for it."""


class ModelOutageShape(OutageShape):
    """An outage of one model, while others of the provider may respond."""

    model: str


class ProviderSummaryShape(DefinitionShape):
    """A model server."""

    kind: str
    default_model: str
    available: bool
    outage: OutageShape | None
    """That of the whole provider."""
    unavailable_models: list[ModelOutageShape]


class ProviderSettingsShape(Shape):
    """How a provider is reached."""

    base_url: str
    key_env: str
    has_key: bool
    has_headers: bool
    timeout: float
    outage_minutes: float
    max_concurrent_runs: int | None
    requests_per_minute: int | None
    tokens_per_minute: int | None
    stream: bool
    tested_at: str | None
    test_error: str


class ProviderShape(ProviderSummaryShape):
    """A model server with its settings."""

    settings: ProviderSettingsShape | None
    """Null if you may not edit the provider."""


class ProviderModelShape(Shape):
    """A model of a provider."""

    name: str
    functions: bool | None
    images: bool | None
    context_tokens: int | None
    input_price: str | None
    """Per million tokens, in the currency of your prices."""
    cached_price: str | None
    output_price: str | None


class ProviderTestShape(Shape):
    """The result of a connection test."""

    ok: bool
    message: str
    models: list[str]


class ProviderFields(SharingBody):
    """What can be changed of a provider; what is left out stays."""

    kind: Annotated[str, Field(max_length=20)] = "openai"
    base_url: Annotated[str, Field(max_length=500)] = ""
    key: Annotated[str, Field(max_length=4000)] = ""
    """Write-only; empty removes the key."""
    key_env: Annotated[str, Field(max_length=120)] = ""
    default_model: Annotated[str, Field(max_length=200)] = ""
    timeout: Annotated[float, Field(ge=1, le=3600)] = 60.0
    outage_minutes: Annotated[float, Field(ge=0, le=10_080)] = 30.0
    max_concurrent_runs: Annotated[int, Field(ge=1, lt=2**31)] | None = None
    requests_per_minute: Annotated[int, Field(ge=1, lt=2**31)] | None = None
    tokens_per_minute: Annotated[int, Field(ge=1, lt=2**31)] | None = None
    stream: bool = True


class NewProviderBody(ProviderFields):
    """The body of `POST /api/v1/providers`."""

    name: Name


class ProviderBody(ProviderFields):
    """The body of `PATCH /api/v1/providers/{id}`."""

    name: Name = ""


FORM_FIELDS = (
    *("name", "kind", "base_url", "key_env", "default_model", "timeout"),
    *("outage_minutes", "max_concurrent_runs", "requests_per_minute"),
    *("tokens_per_minute", "stream", "visibility"),
)
"""Columns that the form of the page has."""


def provider_summary(provider: Provider, found: list[OpenOutage]) -> Json:
    whole = [outage_json(one) for one in found if not one.outage.model]
    return {
        **definition_json(provider),
        "kind": provider.kind,
        "default_model": provider.default_model,
        "available": not whole,
        "outage": whole[0] if whole else None,
        "unavailable_models": [
            {"model": one.outage.model, **outage_json(one)}
            for one in found
            if one.outage.model
        ],
    }


def provider_json(provider: Provider, user: User) -> Json:
    found = list_open_outages([provider], user).get(provider.pk, [])
    may_edit = user.is_superuser or provider.owner_id == user.pk
    return {
        **provider_summary(provider, found),
        "settings": settings_json(provider) if may_edit else None,
    }


def settings_json(provider: Provider) -> Json:
    return {
        "base_url": provider.base_url,
        "key_env": provider.key_env,
        "has_key": bool(provider.sealed_key),
        "has_headers": bool(provider.sealed_headers),
        "timeout": provider.timeout,
        "outage_minutes": provider.outage_minutes,
        "max_concurrent_runs": provider.max_concurrent_runs,
        "requests_per_minute": provider.requests_per_minute,
        "tokens_per_minute": provider.tokens_per_minute,
        "stream": provider.stream,
        "tested_at": format_timestamp(provider.tested_at),
        "test_error": provider.test_error,
    }


def outage_json(found: OpenOutage) -> Json:
    """Return an outage; `next_attempt_at` is null while a run tests the provider."""
    outage = found.outage
    probe_at = outage.probe_at if outage.probe_run_id is None else None
    return {
        "since": format_timestamp(outage.started_at),
        "error": {"code": outage.error_code, "message": outage.error_message},
        "next_attempt_at": format_timestamp(probe_at),
        "waiting_runs": found.waiting_runs,
    }


PROVIDERS = Definition(
    "provider",
    Provider,
    lambda provider: provider_summary(provider, []),
    provider_json,
)


def list_providers_with_outages(
    request: HttpRequest, user: User, query: PageQuery
) -> HttpResponse:
    """The providers that you may see, and whether they are available."""
    rows = PROVIDERS.visible(user).filter(archived_at=None)
    page = paginate_by_id(rows, query, lambda row: row)
    outages = list_open_outages(page["data"], user)
    shapes = [provider_summary(row, outages.get(row.pk, [])) for row in page["data"]]
    return json_response({"data": shapes, "next": page["next"]})


def create_provider(
    request: HttpRequest, user: User, body: NewProviderBody
) -> HttpResponse:
    """Create a provider; test the connection then."""
    with transaction.atomic():
        provider = save_provider(Provider(owner=user), body)
    return PROVIDERS.respond(user, provider.pk, 201)


def change_provider(
    request: HttpRequest, user: User, pk: str, body: ProviderBody
) -> HttpResponse:
    """Change a provider; what the body leaves out, such as the key, stays."""
    with PROVIDERS.edit(request, user, pk) as provider:
        save_provider(provider, body)
    return PROVIDERS.respond(user, provider.pk)


def save_provider(provider: Provider, body: NewProviderBody | ProviderBody) -> Provider:
    """Check the body as the form of the page does, and save it; raise a 422."""
    share_definition(provider, body)
    form = ProviderForm(build_provider_form_data(provider, body), instance=provider)
    if not form.is_valid():
        raise form_problem(form)
    saved = form.save()
    save_groups(saved, body)
    return saved


def build_provider_form_data(
    provider: Provider, body: NewProviderBody | ProviderBody
) -> QueryDict:
    """Return the fields of the form: those of the body, and the stored ones."""
    sent = body.model_dump(exclude_unset=True)
    given = QueryDict(mutable=True)
    for name in FORM_FIELDS:
        value: Any = sent.get(name, getattr(provider, name))
        if value is not None and value is not False:
            given[name] = str(value)
    groups = shared_group_ids(provider, body)
    given.setlist("groups", [str(pk) for pk in groups])
    if "key" in sent:
        given["key" if body.key else "forget_key"] = body.key or "on"
    return given


def run_connection_test(
    request: HttpRequest, user: User, pk: str, body: EmptyBody
) -> HttpResponse:
    """List the models of the server, as a run would, and store them."""
    outcome = run_provider_test(PROVIDERS.require_editable(user, pk))
    return json_response(
        {
            "ok": outcome.ok,
            "message": outcome.message,
            "models": [model.name for model in outcome.models],
        }
    )


def list_provider_models(
    request: HttpRequest, user: User, pk: str, query: PageQuery
) -> HttpResponse:
    """The known models of a provider, with their features and prices."""
    rows = ProviderModel.objects.filter(provider=PROVIDERS.find(user, pk))
    page = paginate_by_id(rows, query, provider_model_json, oldest_first=True)
    return json_response(page)


def provider_model_json(model: ProviderModel) -> Json:
    def price(name: str) -> str | None:
        value = getattr(model, name)
        return None if value is None else str(value)

    return {
        "name": model.name,
        "functions": model.functions,
        "images": model.images,
        "context_tokens": model.context_tokens,
        "input_price": price("input_price"),
        "cached_price": price("cached_price"),
        "output_price": price("output_price"),
    }


ROUTES = [
    Route(
        "GET",
        "providers",
        list_providers_with_outages,
        "List providers",
        Page[ProviderSummaryShape],
        query=PageQuery,
    ),
    *[
        route
        for route in build_common_routes(PROVIDERS, ProviderShape, ProviderSummaryShape)
        if (route.method, route.path) != ("GET", "providers")
    ],
    Route(
        "POST",
        "providers",
        create_provider,
        "Create a provider",
        ProviderShape,
        scope="build",
        body=NewProviderBody,
        status=201,
        is_idempotent=True,
    ),
    Route(
        "PATCH",
        "providers/{id}",
        change_provider,
        "Change a provider",
        ProviderShape,
        scope="build",
        body=ProviderBody,
        has_etag=True,
    ),
    Route(
        "POST",
        "providers/{id}/test",
        run_connection_test,
        "Test a provider",
        ProviderTestShape,
        scope="build",
        body=EmptyBody,
    ),
    Route(
        "GET",
        "providers/{id}/models",
        list_provider_models,
        "List models",
        Page[ProviderModelShape],
        query=PageQuery,
    ),
]
