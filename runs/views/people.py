"""Signing in and out, and what one person chooses."""

from django.contrib import admin, messages
from django.contrib.auth import login, logout, update_session_auth_hash
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import LoginView
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import (
    require_GET,
    require_http_methods,
    require_POST,
)

from runs.forms.people import PasswordForm, SignInForm, TokenForm
from runs.htmx import HtmxRequest
from runs.models import ApiToken, Preferences
from runs.services.api_token import create_token, revoke_token
from runs.services.login_link import is_usable, use_login_link
from runs.views.frame import THEMES, frame
from tools.secrets import SecretUnreadable, seal, unseal

_LOGIN = LoginView.as_view(
    template_name="people/sign_in.html",
    authentication_form=SignInForm,
    redirect_authenticated_user=True,
)
JUST_MADE = "just-made"
"""Where the session keeps a token, sealed, until its page has shown it."""
BACKEND = "django.contrib.auth.backends.ModelBackend"


@login_not_required
def sign_in(request: HttpRequest) -> HttpResponseBase:
    """Ask for name and password."""
    return _LOGIN(request)


@require_GET
@never_cache
def admin_sign_in(request: HtmxRequest) -> HttpResponse:
    """Go on to the admin; strangers come here after they have signed in."""
    if not admin.site.has_permission(request):
        raise PermissionDenied
    wanted = request.GET.get("next", "")
    is_ours = url_has_allowed_host_and_scheme(
        wanted, {request.get_host()}, require_https=request.is_secure()
    )
    return redirect(wanted if is_ours else "admin:index")


@require_POST
@never_cache
def sign_out(request: HtmxRequest) -> HttpResponse:
    """End the session."""
    logout(request)
    return redirect("sign-in")


@login_not_required
@never_cache
@require_http_methods(["GET", "POST"])
def login_link(request: HttpRequest, token: str) -> HttpResponse:
    """Show a button; pressing it uses the link up, so that a preview cannot."""
    if request.method == "POST":
        user = use_login_link(token)
        if user is not None:
            login(request, user, backend=BACKEND)
            return redirect("home")
        return render(request, "people/login_link.html", {"is_usable": False})
    context = {"is_usable": is_usable(token)}
    return render(request, "people/login_link.html", context)


@require_http_methods(["GET", "POST"])
@never_cache
def set_password(request: HtmxRequest) -> HttpResponse:
    """Set one's password; other sessions end."""
    form = PasswordForm(request.user, request.POST or None)
    if form.is_valid():
        form.save()
        update_session_auth_hash(request, request.user)
        messages.success(request, "Your new password counts from now on.")
        return redirect("set-password")
    return render(request, "people/password.html", {"form": form})


@require_http_methods(["GET", "POST"])
@never_cache
def token_list(request: HtmxRequest) -> HttpResponse:
    """Show one's API tokens; a new one is shown by the next page and never again."""
    form = TokenForm(request.POST or None)
    if form.is_valid():
        made = create_token(request.user, form.cleaned_data["name"])
        request.session[JUST_MADE] = seal(made)
        return redirect("token-list")
    made = take_new_token(request)
    tokens = ApiToken.objects.filter(user=request.user, revoked_at=None).order_by("-pk")
    context = {"form": form, "made": made, "tokens": tokens}
    return render(request, "people/tokens.html", context)


def take_new_token(request: HtmxRequest) -> str:
    """Return the token that was just made, once; else nothing."""
    sealed = request.session.pop(JUST_MADE, "")
    try:
        return unseal(sealed) if sealed else ""
    except SecretUnreadable:
        return ""


@require_POST
def token_revoke(request: HtmxRequest, pk: int) -> HttpResponse:
    """End one of one's tokens."""
    token = get_object_or_404(ApiToken.objects.filter(user=request.user), pk=pk)
    revoke_token(token)
    messages.success(request, f"The token {token} opens nothing any more.")
    return redirect("token-list")


@require_POST
def set_theme(request: HtmxRequest) -> HttpResponse:
    """Keep light, dark or system, and go back to where one was."""
    theme = request.POST.get("theme", "")
    if theme in dict(THEMES):
        Preferences.objects.update_or_create(
            user=request.user, defaults={"theme": theme}
        )
    return redirect(safe_next(request))


def safe_next(request: HttpRequest) -> str:
    """Return the page to go back to: an own address, else home."""
    there = request.POST.get("next", "")
    own = url_has_allowed_host_and_scheme(
        there, {request.get_host()}, require_https=request.is_secure()
    )
    return there if own else "/"


@require_GET
def health_part(request: HtmxRequest) -> HttpResponse:
    """Show the signs of life of the workers again."""
    return render(request, "parts/_health.html", frame(request))


@require_GET
def live(request: HttpRequest) -> HttpResponse:
    """Name the address of the person's live stream; under ASGI it never comes here."""
    raise Http404
