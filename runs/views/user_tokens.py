"""API tokens of another user, for users who can administer the account."""

from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from runs.forms.accounts import TokenForm
from runs.htmx import HtmxRequest
from runs.services.accounts.tokens import list_own_tokens, revoke_token
from runs.ui.list_search import get_search_text, search_rows
from runs.views.accounts import (
    NEW_TOKEN_KEY,
    confirm_revocation,
    pop_new_token,
    report_renewal,
)
from runs.views.lists.confirm import is_confirmed
from tools.accounts.service_account import is_service_account
from tools.admin.grantable import may_change_account
from tools.secrets import seal


def get_changeable_account(request: HtmxRequest, pk: int) -> User:
    """Return a user whose account the person may change; 403 and 404 otherwise."""
    if not may_change_account(request.user):
        raise PermissionDenied
    user: User = get_object_or_404(User, pk=pk)
    if not may_change_account(request.user, user):
        raise PermissionDenied
    return user


@require_http_methods(["GET", "POST"])
@never_cache
def user_tokens(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show the tokens; POST creates one of a service account, shown once."""
    user = get_changeable_account(request, pk)
    form = None
    if is_service_account(user):
        data = request.POST if request.method == "POST" else None
        form = TokenForm(data, owner=user)
    elif request.method == "POST":
        raise PermissionDenied
    if form is not None and form.is_valid() and (made := form.save()):
        request.session[get_new_token_key(pk)] = seal(made)
        return redirect("user-tokens", pk)
    query = get_search_text(request)
    context = {
        "account": user,
        "form": form,
        "made": pop_new_token(request, get_new_token_key(pk)),
        "tokens": search_rows(list_own_tokens(user), query, "name"),
        "q": query,
    }
    return render(request, "accounts/user_tokens.html", context)


def get_new_token_key(pk: int) -> str:
    """Return the session key of an account's new token, until it has been shown."""
    return f"{NEW_TOKEN_KEY}-{pk}"


@require_POST
def user_token_renew(request: HtmxRequest, pk: int, token_pk: int) -> HttpResponse:
    """Renew a token of a service account; people renew their own."""
    user = get_changeable_account(request, pk)
    if not is_service_account(user):
        raise PermissionDenied
    report_renewal(request, get_object_or_404(list_own_tokens(user), pk=token_pk))
    return redirect("user-tokens", pk)


@require_POST
def user_token_revoke(request: HtmxRequest, pk: int, token_pk: int) -> HttpResponse:
    user = get_changeable_account(request, pk)
    token = get_object_or_404(list_own_tokens(user), pk=token_pk)
    if not is_confirmed(request):
        return confirm_revocation(request, token, reverse("user-tokens", args=[pk]))
    revoke_token(token)
    messages.success(request, _("Token %(token)s revoked.") % {"token": token})
    return redirect("user-tokens", pk)
