"""Check who sent a request to an incoming webhook, and when.

Each scheme is its sender's own: what is signed, with which header, and what names a
message, so that one that arrives twice starts one run.
"""

import base64
import binascii
import hashlib
import hmac
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from django.utils.translation import gettext as _

from runs.models import Hook

TOLERANCE_SECONDS = 300
"""How old or how far in the future a signed time may be."""
MAX_ID_CHARS = 200

Headers = Mapping[str, str]
"""By names in lower case."""


class SignatureRefused(Exception):
    """The request is not from the sender, or is not new."""


class VerifiedMessage(NamedTuple):
    """A request whose sender is known."""

    id: str
    """Names the message; empty if nothing does. Nobody but the sender can choose it."""


def verify_request(
    hook: Hook,
    secrets: Sequence[str],
    *,
    headers: Headers,
    body: bytes,
    now: float | None = None,
) -> VerifiedMessage:
    """Return the message; raise `SignatureRefused` with a sentence."""
    check = _CHECKS[Hook.Scheme(hook.scheme)]
    return check(secrets, headers, body, time.time() if now is None else now)


def _verify_standard(
    secrets: Sequence[str], headers: Headers, body: bytes, now: float
) -> VerifiedMessage:
    name = _get_header(headers, "webhook-id")
    stamp = _get_header(headers, "webhook-timestamp")
    given = _get_header(headers, "webhook-signature").split()
    message = f"{name}.{stamp}.".encode() + body
    wanted = [
        "v1," + base64.b64encode(_hmac(_decode_standard_secret(one), message)).decode()
        for one in secrets
    ]
    _require_match(given, wanted)
    _check_time(stamp, now)
    return VerifiedMessage(name)


def _verify_github(
    secrets: Sequence[str], headers: Headers, body: bytes, now: float
) -> VerifiedMessage:
    """The delivery id is not signed, so the signature of the body names the message."""
    given = _get_header(headers, "x-hub-signature-256").strip()
    wanted = ["sha256=" + _hmac(one.encode(), body).hex() for one in secrets]
    _require_match([given], wanted)
    return VerifiedMessage(given)


def _verify_slack(
    secrets: Sequence[str], headers: Headers, body: bytes, now: float
) -> VerifiedMessage:
    stamp = _get_header(headers, "x-slack-request-timestamp")
    given = _get_header(headers, "x-slack-signature").strip()
    message = f"v0:{stamp}:".encode() + body
    wanted = ["v0=" + _hmac(one.encode(), message).hex() for one in secrets]
    _require_match([given], wanted)
    _check_time(stamp, now)
    return VerifiedMessage(given)


def _verify_stripe(
    secrets: Sequence[str], headers: Headers, body: bytes, now: float
) -> VerifiedMessage:
    header = _get_header(headers, "stripe-signature")
    pairs = [part.strip().partition("=") for part in header.split(",")]
    stamp = next((value for name, _, value in pairs if name == "t"), "")
    given = [value for name, _, value in pairs if name == "v1"]
    message = f"{stamp}.".encode() + body
    wanted = [_hmac(one.encode(), message).hex() for one in secrets]
    _require_match(given, wanted)
    _check_time(stamp, now)
    return VerifiedMessage(next(one for one in given if one in wanted))


def _verify_bearer(
    secrets: Sequence[str], headers: Headers, body: bytes, now: float
) -> VerifiedMessage:
    scheme, _space, token = _get_header(headers, "authorization").partition(" ")
    if scheme.lower() != "bearer":
        raise SignatureRefused(_("The header Authorization: Bearer is missing."))
    _require_match([token.strip()], secrets)
    name = headers.get("idempotency-key") or headers.get("webhook-id") or ""
    return VerifiedMessage(name[:MAX_ID_CHARS])


_CHECKS: dict[
    Hook.Scheme, Callable[[Sequence[str], Headers, bytes, float], VerifiedMessage]
] = {
    Hook.Scheme.STANDARD: _verify_standard,
    Hook.Scheme.GITHUB: _verify_github,
    Hook.Scheme.SLACK: _verify_slack,
    Hook.Scheme.STRIPE: _verify_stripe,
    Hook.Scheme.BEARER: _verify_bearer,
}


def _get_header(headers: Headers, name: str) -> str:
    value = headers.get(name, "")
    if not value:
        raise SignatureRefused(_("The header %(name)s is missing.") % {"name": name})
    return value


def _require_match(given: Sequence[str], wanted: Sequence[str]) -> None:
    """Raise unless one of `given` is one of `wanted`; takes the same time for each."""
    found = [
        hmac.compare_digest(one.encode("utf-8", "replace"), other.encode())
        for one in given[:10]
        for other in wanted
    ]
    if not any(found):
        raise SignatureRefused(
            _("The signature is wrong. Check the secret at the sender.")
        )


def _check_time(stamp: str, now: float) -> None:
    if not re.fullmatch(r"\d{1,12}", stamp):
        raise SignatureRefused(_("The time of the request is not a number of seconds."))
    if abs(now - int(stamp)) > TOLERANCE_SECONDS:
        raise SignatureRefused(
            _("The request is older than 5 minutes, or the sender's clock is wrong.")
        )


def _hmac(key: bytes, message: bytes) -> bytes:
    return hmac.new(key, message, hashlib.sha256).digest()


def _decode_standard_secret(secret: str) -> bytes:
    try:
        return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except binascii.Error:
        return secret.encode()
