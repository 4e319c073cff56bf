"""What a user owns, for administrators, and the form that moves it."""

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_http_methods

from runs.forms.widgets import style_widgets
from runs.htmx import HtmxRequest
from runs.services.accounts.transfer import (
    CannotTransfer,
    list_owned_rows,
    list_shared_uses,
    transfer_ownership,
)


class TransferForm(forms.Form):
    """The user who becomes the owner."""

    to = forms.ModelChoiceField(User.objects.none(), label=gettext_lazy("New owner"))

    def __init__(self, user: User, data: Any = None) -> None:
        super().__init__(data)
        others = User.objects.filter(is_active=True).exclude(pk=user.pk)
        self.fields["to"].queryset = others.order_by("username")  # type: ignore[attr-defined]  # a choice of rows
        style_widgets(self)


@require_http_methods(["GET", "POST"])
def user_ownership(request: HtmxRequest, pk: int) -> HttpResponse:
    """List what a user owns; POST moves it to another user."""
    if not request.user.is_superuser:
        raise PermissionDenied
    user = get_object_or_404(User, pk=pk)
    form = TransferForm(user, request.POST or None)
    if form.is_valid():
        to = form.cleaned_data["to"]
        try:
            count = transfer_ownership(user, to, by=request.user)
        except CannotTransfer as refused:
            form.add_error("to", str(refused))
        else:
            text = ngettext(
                "%(count)s object now belongs to %(user)s.",
                "%(count)s objects now belong to %(user)s.",
                count,
            )
            messages.success(request, text % {"count": count, "user": to.username})
            return redirect("user-ownership", pk)
    rows = list_owned_rows(user)
    context = {
        "owner": user,
        "form": form,
        "rows": rows,
        "shared": list_shared_uses(user),
        "has_moved_rows": any(each.is_moved for each in rows),
    }
    return render(request, "people/ownership.html", context)
