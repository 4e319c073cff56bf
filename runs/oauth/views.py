"""The endpoints of the authorization server, and the page that asks the person."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from django import forms
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import RequestDataTooBig
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseRedirect,
    JsonResponse,
    QueryDict,
)
from django.shortcuts import render
from django.utils import translation
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from pydantic import ValidationError

from runs.forms.widgets import style_widgets
from runs.htmx import HtmxRequest
from runs.models import ApiToken
from runs.oauth.clients import (
    OAuthClient,
    Registration,
    create_oauth_client,
    read_client,
)
from runs.oauth.codes import Access, AccessRequest, issue_code, redeem_code
from runs.oauth.errors import OAuthError
from runs.oauth.metadata import (
    RESOURCES,
    SCOPES,
    describe_authorization_server,
    describe_resource,
    get_issuer,
)

CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
MAX_STATE = 1000
"""Characters, as they are written in an address."""
GRANT = "authorization_code"
NOT_A_REGISTRATION = OAuthError(
    "invalid_client_metadata",
    "The body must be JSON with `redirect_uris`, a list of one to ten addresses.",
)


class ConsentForm(forms.Form):
    """How long the client may act for the person."""

    days = forms.ChoiceField(
        choices=(
            ("1", _("One day")),
            ("30", _("30 days")),
            ("90", _("90 days")),
            ("365", _("One year")),
        ),
        initial="30",
        label=_("Expires after"),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        style_widgets(self)


class RedirectToClient(HttpResponseRedirect):
    """A redirect to a registered address, which may belong to a program."""

    def __init__(self, address: str) -> None:
        self.allowed_schemes = [urlsplit(address).scheme]
        super().__init__(address)


@require_GET
@login_not_required
def resource_metadata(request: HttpRequest, path: str) -> HttpResponse:
    return JsonResponse(describe_resource(request, path))


@require_GET
@login_not_required
def server_metadata(request: HttpRequest) -> HttpResponse:
    return JsonResponse(describe_authorization_server(request))


@csrf_exempt
@login_not_required
@require_POST
@never_cache
def register(request: HttpRequest) -> HttpResponse:
    """Register a public client (RFC 7591)."""
    try:
        client = create_oauth_client(Registration.model_validate_json(request.body))
    except OAuthError as error:
        return JsonResponse(error.body, status=400)
    except (ValidationError, RequestDataTooBig):
        return JsonResponse(NOT_A_REGISTRATION.body, status=400)
    registered = {
        "client_id": client.id,
        "client_name": client.name,
        "redirect_uris": client.redirect_uris,
        "grant_types": [GRANT],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    }
    return JsonResponse(registered, status=201)


@require_http_methods(["GET", "POST"])
@never_cache
def authorize(request: HtmxRequest) -> HttpResponse:
    """Ask the person who is signed in; send their answer to the client.

    Until client and address are known to belong together, nothing is sent anywhere.
    """
    try:
        client = read_client(request.GET.get("client_id", ""))
        redirect_uri = pick_address(client, request.GET.get("redirect_uri"))
    except OAuthError as error:
        context = {"problem": error.description}
        return render(request, "oauth/authorize.html", context, status=400)
    try:
        asked = read_access_request(request, client, redirect_uri)
    except OAuthError as error:
        if request.method == "POST":
            return send_to_client(request, redirect_uri, error.body)
        # A link alone must not lead from here to an address that a stranger chose.
        context = {"problem": error.description}
        return render(request, "oauth/authorize.html", context, status=400)
    form = ConsentForm(request.POST or None)
    match request.POST.get("answer"):
        case "allow" if form.is_valid():
            code = issue_code(asked, request.user, days=int(form.cleaned_data["days"]))
            return send_to_client(request, redirect_uri, {"code": code})
        case "cancel":
            refusal = OAuthError("access_denied", "The person did not allow access.")
            return send_to_client(request, redirect_uri, refusal.body)
    page: dict[str, Any] = {
        "asked": asked,
        "form": form,
        "host": describe_address(redirect_uri),
        "scope_labels": [
            scope.label for scope in ApiToken.Scope if scope in asked.scopes
        ],
    }
    response = render(request, "oauth/authorize.html", page)
    response["Content-Security-Policy"] = allow_form_target(redirect_uri)
    return response


def pick_address(client: OAuthClient, given: str | None) -> str:
    """Return where to send the answer; raises `OAuthError`."""
    if given is None and len(client.redirect_uris) == 1:
        return client.redirect_uris[0]
    if given is None or not client.accepts(given):
        raise OAuthError(
            "invalid_request", "redirect_uri: not registered for this client."
        )
    return given


def read_access_request(
    request: HttpRequest, client: OAuthClient, redirect_uri: str
) -> AccessRequest:
    """Return what the client asks for; raises `OAuthError`."""
    given = request.GET
    if given.get("response_type") != "code":
        raise OAuthError("unsupported_response_type", "response_type: must be `code`.")
    challenge = given.get("code_challenge", "")
    method = given.get("code_challenge_method")
    if not CHALLENGE.fullmatch(challenge) or method != "S256":
        raise OAuthError(
            "invalid_request",
            "code_challenge: required, with the code_challenge_method `S256`.",
        )
    if len(quote_state(request)) > MAX_STATE:
        raise OAuthError("invalid_request", f"state: at most {MAX_STATE} characters.")
    scopes = read_scopes(given, read_resource(request))
    return AccessRequest(client, redirect_uri, challenge, scopes)


def read_resource(request: HttpRequest) -> str:
    """Return the path of what the client will call; raises `OAuthError` (RFC 8707)."""
    given = [address.rstrip("/") for address in request.GET.getlist("resource")]
    known = {request.build_absolute_uri(f"/{path}"): path for path in RESOURCES}
    known[get_issuer(request)] = "mcp"
    if not known.keys() >= set(given):
        raise OAuthError(
            "invalid_target", f"resource: must be one of {', '.join(known)}."
        )
    paths = {known[address] for address in given}
    return paths.pop() if len(paths) == 1 else "mcp"


def read_scopes(given: QueryDict, path: str) -> tuple[str, ...]:
    """Return the scopes in the request, else those of `path`; raises `OAuthError`."""
    asked = given.get("scope", "").split()
    if not set(asked) <= set(SCOPES):
        raise OAuthError(
            "invalid_scope", f"scope: only {', '.join(SCOPES)} are offered."
        )
    return tuple(scope for scope in SCOPES if scope in asked) or RESOURCES[path]


def send_to_client(
    request: HttpRequest, redirect_uri: str, answer: Mapping[str, str]
) -> HttpResponse:
    """Redirect to the client with the answer, its state and who answers (RFC 9207)."""
    values = urlencode({**answer, "iss": get_issuer(request)})
    if len(state := quote_state(request)) <= MAX_STATE:
        values += state
    joint = "&" if urlsplit(redirect_uri).query else "?"
    return RedirectToClient(f"{redirect_uri}{joint}{values}")


def quote_state(request: HttpRequest) -> str:
    """Return the client's state as the end of a query; empty if it sent none."""
    state = request.GET.get("state")
    return "" if state is None else "&" + urlencode({"state": state}, errors="replace")


def describe_address(redirect_uri: str) -> str:
    """Return what a person recognizes an address by."""
    parts = urlsplit(redirect_uri)
    is_web = parts.scheme in {"http", "https"}
    return parts.netloc if is_web else f"{parts.scheme}://{parts.netloc}"


def allow_form_target(redirect_uri: str) -> str:
    """Return the policy with the client's address: browsers check redirects, too."""
    parts = urlsplit(redirect_uri)
    has_name = parts.scheme in {"http", "https"} and "[" not in parts.netloc
    target = f"{parts.scheme}://{parts.netloc}" if has_name else f"{parts.scheme}:"
    return settings.CONTENT_SECURITY_POLICY.replace(
        "form-action 'self'", f"form-action 'self' {target}"
    )


@csrf_exempt
@login_not_required
@require_POST
@never_cache
def token(request: HttpRequest) -> HttpResponse:
    """Exchange a code for an API token."""
    with translation.override("en"):
        try:
            access = exchange(request)
        except OAuthError as error:
            status = 401 if error.code == "invalid_client" else 400
            return JsonResponse(error.body, status=status)
    granted = {
        "access_token": access.token,
        "token_type": "Bearer",
        "expires_in": int(access.lifetime.total_seconds()),
        "scope": access.scopes,
    }
    return JsonResponse(granted)


def exchange(request: HttpRequest) -> Access:
    given = request.POST
    if given.get("grant_type") != GRANT:
        raise OAuthError("unsupported_grant_type", f"grant_type: must be `{GRANT}`.")
    return redeem_code(
        given.get("code", ""),
        client=read_client(given.get("client_id", "")),
        redirect_uri=given.get("redirect_uri"),
        verifier=given.get("code_verifier", ""),
    )
