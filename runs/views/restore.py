"""The page on which an administrator confirms a restore."""

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from runs.forms.restore import RestoreForm
from runs.htmx import HtmxRequest
from runs.models import SiteRestore
from runs.services.backup.confirm import (
    NoPausedRestore,
    confirm_restore,
    count_restored_work,
)
from runs.services.retention.rules import load_rules


@require_http_methods(["GET", "POST"])
def restore_confirm(request: HtmxRequest) -> HttpResponse:
    """Show what waits; POST applies the choices and ends the pause."""
    if not request.user.is_superuser:
        raise PermissionDenied
    form = RestoreForm(request.POST or None)
    restore = SiteRestore.objects.unconfirmed().first()
    if form.is_valid():
        try:
            confirm_restore(form.to_choices(), by=request.user)
        except NoPausedRestore:
            messages.info(request, _("The site is not paused."))
        else:
            messages.success(request, _("Confirmed. The site is no longer paused."))
        return redirect("home")
    if restore is None:
        messages.info(request, _("The site is not paused."))
        return redirect("home")
    context = {
        "form": form,
        "restore": restore,
        "work": count_restored_work(),
        "has_retention_rules": not load_rules().is_empty,
    }
    return render(request, "restore/confirm.html", context)
