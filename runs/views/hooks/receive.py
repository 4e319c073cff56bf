"""The public address of an incoming webhook."""

import logging

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import RequestDataTooBig
from django.db import DatabaseError
from django.http import HttpRequest, JsonResponse
from django.utils import translation
from django.views.decorators.csrf import csrf_exempt

from runs.models import Hook
from runs.services.hooks.receive import (
    MAX_BODY_BYTES,
    ReceivedRequest,
    receive_hook_request,
)
from tools.audit.actor import Way, act_as

logger = logging.getLogger(__name__)


@csrf_exempt
@login_not_required
def hook_receive(request: HttpRequest, key: str) -> JsonResponse:
    """Start a run for a signed request; the answer is JSON in any case."""
    if request.method != "POST":
        response = error_response(405, "Send a POST request.")
        response["Allow"] = "POST"
        return response
    try:
        body = request.body if has_accepted_size(request) else None
    except RequestDataTooBig:
        body = None
    if body is None:
        return error_response(413, f"Send at most {MAX_BODY_BYTES:,} bytes.")
    try:
        hook = Hook.objects.select_related("owner", "agent").filter(key=key).first()
        if hook is None:
            return error_response(404, "No incoming webhook has this address.")
        headers = {name.lower(): value for name, value in request.headers.items()}
        # Errors are in English, whatever the sender's language.
        with translation.override("en"), act_as(hook.owner, way=Way.API):
            return build_hook_response(
                receive_hook_request(hook, headers=headers, body=body)
            )
    except DatabaseError:
        logger.exception("an incoming webhook could not be read")
        return error_response(503, "Database unavailable. Try again later.")


def has_accepted_size(request: HttpRequest) -> bool:
    length = request.META.get("CONTENT_LENGTH") or "0"
    return not length.isdecimal() or int(length) <= MAX_BODY_BYTES


def build_hook_response(received: ReceivedRequest) -> JsonResponse:
    if received.challenge:
        return JsonResponse({"challenge": received.challenge})
    if received.status != 200:
        response = error_response(received.status, received.error)
        if received.retry_seconds is not None:
            response["Retry-After"] = str(received.retry_seconds)
        return response
    return JsonResponse({"status": received.outcome, "run": received.run_id})


def error_response(status: int, message: str) -> JsonResponse:
    return JsonResponse({"error": message}, status=status)
