"""One model of a provider: what it can do, and what it costs."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods

from runs.forms.provider_model import PRICES, ProviderModelForm
from runs.htmx import HtmxRequest
from runs.models import Provider, ProviderModel


@require_http_methods(["GET", "POST"])
def provider_model_create(request: HtmxRequest, pk: int) -> HttpResponse:
    """Ask for a model that the server does not name."""
    provider = get_object_or_404(Provider.objects.editable_by(request.user), pk=pk)
    return answered(request, provider, ProviderModel())


@require_http_methods(["GET", "POST"])
def provider_model(request: HtmxRequest, pk: int, model_pk: int) -> HttpResponse:
    """Show what is known of a model; the provider's owner can change it."""
    provider = get_object_or_404(Provider.objects.editable_by(request.user), pk=pk)
    return answered(request, provider, get_object_or_404(provider.models, pk=model_pk))


def answered(
    request: HtmxRequest, provider: Provider, model: ProviderModel
) -> HttpResponse:
    """Show the form, or save what it was given."""
    form = ProviderModelForm(provider, request.POST or None, instance=model)
    if form.is_valid():
        saved = form.save()
        has_price = saved.input_price is not None or saved.output_price is not None
        counts = " New runs count its prices." if has_price else ""
        messages.success(request, f"{saved.name} is saved.{counts}")
        return redirect("provider-detail", pk=provider.pk)
    context = {
        "provider": provider,
        "model": model,
        "form": form,
        "prices": [form[name] for name in PRICES],
    }
    return render(request, "providers/model.html", context)
