"""What a user owns, for administrators; moving it, and erasing the person."""

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
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
from runs.services.retention.erase_person import CannotErase, erase_person, plan_erasure


class TransferForm(forms.Form):
    """The user who becomes the owner."""

    to = forms.ModelChoiceField(User.objects.none(), label=gettext_lazy("New owner"))

    def __init__(self, user: User, data: Any = None) -> None:
        super().__init__(data)
        others = User.objects.filter(is_active=True).exclude(pk=user.pk)
        self.fields["to"].queryset = others.order_by("username")  # type: ignore[attr-defined]  # a choice of rows
        style_widgets(self)


class EraseForm(forms.Form):
    """What becomes of the definitions, and the user name as a confirmation."""

    to = forms.ModelChoiceField(
        User.objects.none(),
        label=gettext_lazy("New owner of what is listed under Objects"),
        required=False,
        empty_label=gettext_lazy("Nobody: delete all of it"),
    )
    username = forms.CharField(
        label=gettext_lazy("Username"),
        help_text=gettext_lazy("Enter the name of the user to confirm."),
    )

    def __init__(self, user: User, data: Any = None) -> None:
        super().__init__(data)
        self.user = user
        others = User.objects.filter(is_active=True).exclude(pk=user.pk)
        self.fields["to"].queryset = others.order_by("username")  # type: ignore[attr-defined]  # a choice of rows
        self.fields["to"].is_needed = True  # type: ignore[attr-defined]  # a choice either way
        style_widgets(self)

    def clean_username(self) -> str:
        name = str(self.cleaned_data["username"])
        if name != self.user.username:
            raise forms.ValidationError(
                _("This is not the name of the user: %(name)s."),
                params={"name": self.user.username},
            )
        return name


@require_http_methods(["GET", "POST"])
def user_erase(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show what erasing a person deletes; POST starts it."""
    if not request.user.is_superuser:
        raise PermissionDenied
    user = get_object_or_404(User, pk=pk)
    form = EraseForm(user, request.POST or None)
    if form.is_valid():
        try:
            erase_person(user, to=form.cleaned_data["to"], by=request.user)
        except CannotErase as refused:
            form.add_error("to", str(refused))
        else:
            text = _("The account of %(user)s is closed. Workers delete the data now.")
            messages.success(request, text % {"user": user.username})
            return redirect("retention")
    context = {"owner": user, "form": form, "plan": plan_erasure(user)}
    return render(request, "accounts/erase.html", context)


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
    return render(request, "accounts/ownership.html", context)
