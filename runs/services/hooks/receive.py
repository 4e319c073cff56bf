"""Receive a request at an incoming webhook: check it, start a run, and record it."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from django.db import IntegrityError, transaction
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext as _

from runs.engine.parsing.clean import clean_text
from runs.models import Hook, HookRequest, Run
from runs.services.errors import NotAllowed, RunsError, TooManyRuns
from runs.services.hooks.mapping import (
    BodyUnreadable,
    explain_mismatch,
    map_inputs,
    parse_hook_body,
)
from runs.services.hooks.verify import (
    MAX_ID_CHARS,
    SignatureRefused,
    VerifiedMessage,
    verify_request,
)
from runs.services.runs.start import start_run
from runs.services.webhooks.sign import get_current_secrets
from tools.secrets import SecretUnreadable

MAX_BODY_BYTES = 1_000_000
SAME_SECONDS = 60
"""Equal refusals or repetitions within this time are one row, so that nobody fills the
table."""
COUNTED_OUTCOMES = (HookRequest.Outcome.REFUSED, HookRequest.Outcome.DUPLICATE)
MAX_REASON_CHARS = 1_000
SENDER_ID_FIELDS = {Hook.Scheme.SLACK: "event_id", Hook.Scheme.STRIPE: "id"}
"""What the signed body calls the message, the same for each repetition."""

Outcome = HookRequest.Outcome


class ReceivedRequest(NamedTuple):
    """What is answered."""

    status: int
    outcome: str
    run_id: int | None = None
    error: str = ""
    retry_seconds: int | None = None
    challenge: str = ""
    """What Slack wants to read back when the address is entered there."""


def receive_hook_request(
    hook: Hook, *, headers: Mapping[str, str], body: bytes
) -> ReceivedRequest:
    """Start a run for a genuine new message; whatever happens is recorded."""
    try:
        message = verify_request(
            hook, get_current_secrets(hook), headers=headers, body=body
        )
    except SignatureRefused as error:
        return _refuse(hook, 401, str(error), body)
    except SecretUnreadable:
        return _refuse(hook, 503, _("The secret cannot be decrypted."), body)
    if not hook.is_on:
        return _refuse(hook, 403, _("This incoming webhook is paused."), body)
    try:
        document = parse_hook_body(body, headers.get("content-type", ""))
    except BodyUnreadable as error:
        return _refuse(hook, 400, str(error), body)
    if (challenge := _find_challenge(hook, document)) is not None:
        return ReceivedRequest(200, Outcome.IGNORED, challenge=challenge)
    if mismatch := explain_mismatch(hook, document):
        _record(hook, Outcome.IGNORED, body, reason=mismatch)
        return ReceivedRequest(200, Outcome.IGNORED, error=mismatch)
    return _start(hook, name_message(hook, message, document), document, body)


def _start(hook: Hook, name: str, document: Any, body: bytes) -> ReceivedRequest:
    if (twin := _find_started(hook, name)) is not None:
        return _answer_duplicate(hook, twin, body)
    try:
        with transaction.atomic():
            run = _start_hook_run(hook, document)
            _record(hook, Outcome.STARTED, body, run=run, name=name)
    except IntegrityError:
        twin = _find_started(hook, name)
        if twin is None:
            raise
        return _answer_duplicate(hook, twin, body)
    except TooManyRuns as error:
        refused = _refuse(hook, 429, str(error), body)
        return refused._replace(retry_seconds=error.retry_seconds)
    except RunsError as error:
        return _refuse(hook, 422, str(error), body)
    return ReceivedRequest(200, Outcome.STARTED, run.pk)


def _start_hook_run(hook: Hook, document: Any) -> Run:
    if not hook.owner.is_active:
        raise NotAllowed(_("The account of the owner is disabled."))
    return start_run(
        hook.agent,
        by=hook.owner,
        inputs=map_inputs(hook.inputs, document),
        source=Run.Source.HOOK,
    )


def name_message(hook: Hook, message: VerifiedMessage, document: Any) -> str:
    """Return what names the message, the same when it is sent again."""
    field = SENDER_ID_FIELDS.get(Hook.Scheme(hook.scheme))
    own = document.get(field) if field and isinstance(document, dict) else None
    name = own if isinstance(own, str) and own else message.id
    return clean_text(name)[:MAX_ID_CHARS]


def _find_challenge(hook: Hook, document: Any) -> str | None:
    if hook.scheme != Hook.Scheme.SLACK or not isinstance(document, dict):
        return None
    if document.get("type") != "url_verification":
        return None
    return str(document.get("challenge", ""))[:MAX_ID_CHARS]


def _find_started(hook: Hook, name: str) -> HookRequest | None:
    return hook.requests.filter(message_id=name).first() if name else None


def _answer_duplicate(hook: Hook, twin: HookRequest, body: bytes) -> ReceivedRequest:
    reason = _("This message has started a run before.")
    _record(hook, Outcome.DUPLICATE, body, run_id=twin.run_id, reason=reason)
    return ReceivedRequest(200, Outcome.DUPLICATE, twin.run_id)


def _refuse(hook: Hook, status: int, reason: str, body: bytes) -> ReceivedRequest:
    _record(hook, Outcome.REFUSED, body, reason=reason)
    return ReceivedRequest(status, Outcome.REFUSED, error=reason)


def _record(
    hook: Hook,
    outcome: str,
    body: bytes,
    *,
    run: Run | None = None,
    run_id: int | None = None,
    name: str = "",
    reason: str = "",
) -> None:
    """Add a row to the log; one that repeats the last one is counted there."""
    now, reason = timezone.now(), clean_text(reason)[:MAX_REASON_CHARS]
    run_id = run.pk if run is not None else run_id
    if outcome in COUNTED_OUTCOMES:
        last = hook.requests.order_by("-pk").values_list("pk", flat=True)[:1]
        same = HookRequest.objects.filter(
            Q(run_id=run_id),
            pk__in=list(last),
            outcome=outcome,
            reason=reason,
            created_at__gt=now - timedelta(seconds=SAME_SECONDS),
        )
        if same.update(count=F("count") + 1):
            return
    HookRequest.objects.create(
        hook=hook,
        run_id=run_id,
        message_id=name,
        outcome=outcome,
        reason=reason,
        size=len(body),
        created_at=now,
    )
