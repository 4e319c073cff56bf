"""The page of one model of a provider."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from runs.forms.provider_model import PRICES, ProviderModelForm
from runs.htmx import HtmxRequest
from runs.models import Provider, ProviderModel


@require_http_methods(["GET", "POST"])
def provider_model_create(request: HtmxRequest, pk: int) -> HttpResponse:
    """Add a model that the server does not list."""
    provider = get_object_or_404(Provider.objects.editable_by(request.user), pk=pk)
    return edit_provider_model(request, provider, ProviderModel())


@require_http_methods(["GET", "POST"])
def provider_model(request: HtmxRequest, pk: int, model_pk: int) -> HttpResponse:
    """Edit a model; only the owner of the provider may."""
    provider = get_object_or_404(Provider.objects.editable_by(request.user), pk=pk)
    return edit_provider_model(
        request, provider, get_object_or_404(provider.models, pk=model_pk)
    )


def edit_provider_model(
    request: HtmxRequest, provider: Provider, model: ProviderModel
) -> HttpResponse:
    form = ProviderModelForm(provider, request.POST or None, instance=model)
    if form.is_valid():
        saved = form.save()
        has_price = saved.input_price is not None or saved.output_price is not None
        done = (
            _("Model %(name)s saved. New runs use its prices.")
            if has_price
            else _("Model %(name)s saved.")
        )
        messages.success(request, done % {"name": saved.name})
        return redirect("provider-detail", pk=provider.pk)
    context = {
        "provider": provider,
        "model": model,
        "form": form,
        "prices": [form[name] for name in PRICES],
    }
    return render(request, "providers/model.html", context)
