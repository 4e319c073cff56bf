"""Sign-in, password, API tokens, theme and language of one user."""

from typing import cast

from django.conf import settings
from django.contrib import admin, messages
from django.contrib.auth import login, logout, update_session_auth_hash
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView
from django.core.exceptions import PermissionDenied
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
)
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from runs.forms.accounts import ChangePasswordForm, SignInForm, TokenForm
from runs.htmx import HtmxRequest
from runs.language import remember_language
from runs.models import Agent, ApiToken, Preferences
from runs.services.accounts.login_link import is_valid_login_link, use_login_link
from runs.services.accounts.tokens import (
    list_own_tokens,
    renew_token,
    revoke_token,
)
from runs.ui.context_processors import THEMES, only_chats, page_frame
from runs.ui.list_search import get_search_text, search_rows
from runs.views.lists.confirm import is_confirmed, render_confirmation
from tools.audit.write import write_entry
from tools.secrets import SecretUnreadable, seal, unseal


class SignInView(LoginView):
    """Name and password; attempts at an account are in the audit log."""

    template_name = "accounts/sign_in.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True

    def get_success_url(self) -> str:
        """Return the page that was asked for, or the first page of the person.

        The home page is where the address of the site leads: nobody asked for it.
        """
        asked = self.get_redirect_url()
        if asked and asked != reverse("home"):
            return asked
        return get_first_page(cast(User, self.request.user))

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        response = super().form_valid(form)
        record_sign_in(self.request, form.get_user())
        return response

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        user = User.objects.filter(username=form.data.get("username", "")).first()
        is_refused = getattr(self.request, "axes_locked_out", False)
        if user is not None and not is_refused and form.has_error("__all__"):
            write_entry("sign-in failed", "user", user, note=get_address(self.request))
        return super().form_invalid(form)


def get_first_page(user: User) -> str:
    """Return the URL of the chat for people who only chat, else of the home page."""
    agents = Agent.objects.usable_by(user).filter(archived_at=None)
    return reverse("chat" if agents.exists() and only_chats(user) else "home")


def record_sign_in(request: HttpRequest, user: User) -> None:
    write_entry("signed in", "user", user, by=user, note=get_address(request))


def get_address(request: HttpRequest) -> str:
    """Return where a request came from, for the audit log."""
    return str(request.META.get("REMOTE_ADDR", ""))


_login_view = SignInView.as_view()
NEW_TOKEN_KEY = "just-made"  # noqa: S105  # a session key
"""Session key of a sealed token until the page has shown it once."""
LOGIN_BACKEND = "django.contrib.auth.backends.ModelBackend"


@login_not_required
def sign_in(request: HttpRequest) -> HttpResponseBase:
    return _login_view(request)


def sign_in_locked(
    request: HttpRequest, _response: HttpResponseBase, _credentials: object
) -> HttpResponse:
    """Refuse a sign-in, whatever the password, after too many failed ones."""
    seconds = int(settings.AXES_COOLOFF_TIME.total_seconds())
    minutes = seconds // 60
    problem = ngettext(
        "Too many failed sign-ins from your address. Try again in %(count)s minute.",
        "Too many failed sign-ins from your address. Try again in %(count)s minutes.",
        minutes,
    )
    context = {"form": SignInForm(request), "problem": problem % {"count": minutes}}
    response = render(request, "accounts/sign_in.html", context, status=429)
    response["Retry-After"] = str(seconds)
    return response


@require_GET
@never_cache
def admin_sign_in(request: HtmxRequest) -> HttpResponse:
    """Redirect to the admin; anonymous users come here after they sign in."""
    if not admin.site.has_permission(request):
        raise PermissionDenied
    wanted = request.GET.get("next", "")
    return redirect(wanted if is_local_path(request, wanted) else "admin:index")


@require_POST
@never_cache
def sign_out(request: HtmxRequest) -> HttpResponse:
    logout(request)
    return redirect("sign-in")


@login_not_required
@never_cache
@require_http_methods(["GET", "POST"])
def login_link(request: HttpRequest, token: str) -> HttpResponse:
    """Show a button that uses the link, so that link previews do not use it."""
    if request.method == "POST":
        user = use_login_link(token)
        if user is not None:
            login(request, user, backend=LOGIN_BACKEND)
            record_sign_in(request, user)
            return redirect(get_first_page(user))
        return render(request, "accounts/login_link.html", {"is_usable": False})
    context = {"is_usable": is_valid_login_link(token)}
    return render(request, "accounts/login_link.html", context)


@require_http_methods(["GET", "POST"])
@never_cache
def set_password(request: HtmxRequest) -> HttpResponse:
    """Set the password; other sessions end."""
    form = ChangePasswordForm(request.user, request.POST or None)
    if form.is_valid():
        form.save()
        update_session_auth_hash(request, request.user)
        messages.success(request, _("Password saved."))
        return redirect("set-password")
    return render(request, "accounts/password.html", {"form": form})


@require_http_methods(["GET", "POST"])
@never_cache
def token_list(request: HtmxRequest) -> HttpResponse:
    """Show the user's API tokens; the next page shows a new one, once."""
    data = request.POST if request.method == "POST" else None
    form = TokenForm(data, owner=request.user)
    query = get_search_text(request)
    if form.is_valid() and (made := form.save()):
        request.session[NEW_TOKEN_KEY] = seal(made)
        return redirect_to_tokens(request)
    context = {
        "form": form,
        "made": pop_new_token(request),
        "tokens": search_rows(list_own_tokens(request.user), query, "name"),
        "q": query,
        "actions": ["revoke"],
        "next": request.POST.get("next", ""),
    }
    return render(request, "accounts/tokens.html", context)


def redirect_to_tokens(request: HtmxRequest) -> HttpResponseRedirect:
    """Go to the page in `next` that shows tokens, else to the list of them."""
    there = request.POST.get("next", "")
    return redirect(there if is_local_path(request, there) else "token-list")


def pop_new_token(request: HtmxRequest, key: str = NEW_TOKEN_KEY) -> str:
    """Return the token that was just created, once."""
    sealed = request.session.pop(key, "")
    try:
        return unseal(sealed) if sealed else ""
    except SecretUnreadable:
        return ""


def confirm_revocation(
    request: HtmxRequest, token: ApiToken, here: str
) -> HttpResponse:
    return render_confirmation(
        request,
        question=_("Revoke %(token)s?") % {"token": token},
        effect=_("Programs that use it can no longer sign in."),
        do="revoke",
        here=here,
    )


@require_POST
def token_revoke(request: HtmxRequest, pk: int) -> HttpResponse:
    token = get_object_or_404(ApiToken.objects.filter(user=request.user), pk=pk)
    if not is_confirmed(request):
        return confirm_revocation(request, token, redirect_to_tokens(request).url)
    revoke_token(token)
    messages.success(request, _("Token %(token)s revoked.") % {"token": token})
    return redirect_to_tokens(request)


@require_POST
def token_renew(request: HtmxRequest, pk: int) -> HttpResponse:
    """Let a token that expires be valid for longer; its holder need not change."""
    token = get_object_or_404(ApiToken.objects.filter(user=request.user), pk=pk)
    report_renewal(request, token)
    return redirect_to_tokens(request)


def report_renewal(request: HtmxRequest, token: ApiToken) -> None:
    """Renew a token and say until when it is valid."""
    if renew_token(token):
        messages.success(
            request, _("Token %(token)s is valid for 90 days.") % {"token": token}
        )
    else:
        messages.error(
            request,
            _("Token %(token)s cannot be renewed. Create another one.")
            % {"token": token},
        )


@require_POST
def set_theme(request: HtmxRequest) -> HttpResponse:
    theme = request.POST.get("theme", "")
    if theme in dict(THEMES):
        Preferences.objects.update_or_create(
            user=request.user, defaults={"theme": theme}
        )
    return redirect(get_safe_next_url(request))


@require_POST
def set_language(request: HtmxRequest) -> HttpResponse:
    """Save the language of the pages; empty means that of the browser."""
    language = request.POST.get("language", "")
    if language in {"", *dict(settings.LANGUAGES)}:
        Preferences.objects.update_or_create(
            user=request.user, defaults={"language": language}
        )
        remember_language(request, language)
    return redirect(get_safe_next_url(request))


def get_safe_next_url(request: HttpRequest) -> str:
    """Return the local URL in `next`, else home."""
    there = request.POST.get("next", "")
    return there if is_local_path(request, there) else "/"


def is_local_path(request: HttpRequest, url: str) -> bool:
    """Whether a URL is a path of this site; anything else may be a view's name."""
    return url.startswith("/") and url_has_allowed_host_and_scheme(
        url, {request.get_host()}, require_https=request.is_secure()
    )


@require_GET
def health_part(request: HtmxRequest) -> HttpResponse:
    return render(request, "parts/_health.html", page_frame(request))


@require_GET
def live_me(request: HttpRequest) -> HttpResponse:
    """Give the user's live stream a URL; the ASGI app answers it."""
    raise Http404
