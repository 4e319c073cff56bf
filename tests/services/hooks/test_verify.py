"""Signatures of each sender: what is accepted, and what is not."""

import base64
import hashlib
import hmac

import pytest

from runs.models import Hook
from runs.services.hooks.verify import SignatureRefused, verify_request

NOW = 1_700_000_000
BODY = b'{"id": 7}'
SECRET = "whsec_" + base64.b64encode(b"a key of thirty-two bytes for us").decode()
RAW = base64.b64decode(SECRET.removeprefix("whsec_"))


def mac(key: bytes, message: bytes) -> bytes:
    return hmac.new(key, message, hashlib.sha256).digest()


def signed(scheme: str, *, at: int = NOW, body: bytes = BODY) -> dict[str, str]:
    """Return the headers that a sender adds to a body."""
    key = SECRET.encode()
    match scheme:
        case "standard":
            digest = mac(RAW, f"msg_1.{at}.".encode() + body)
            return {
                "webhook-id": "msg_1",
                "webhook-timestamp": str(at),
                "webhook-signature": "v1,bm8= v1," + base64.b64encode(digest).decode(),
            }
        case "github":
            return {"x-hub-signature-256": "sha256=" + mac(key, body).hex()}
        case "slack":
            digest = mac(key, f"v0:{at}:".encode() + body)
            return {
                "x-slack-request-timestamp": str(at),
                "x-slack-signature": "v0=" + digest.hex(),
            }
        case "stripe":
            digest = mac(key, f"{at}.".encode() + body)
            return {"stripe-signature": f"t={at},v1=00,v1={digest.hex()},v0=11"}
    return {"authorization": f"Bearer {SECRET}", "idempotency-key": "k"}


def verify(scheme: str, headers: dict[str, str], body: bytes = BODY, **more):
    secrets = more.pop("secrets", [SECRET])
    return verify_request(
        Hook(scheme=scheme), secrets, headers=headers, body=body, now=NOW
    )


SCHEMES = Hook.Scheme.values
SIGNED = ["standard", "github", "slack", "stripe"]
TIMED = ["standard", "slack", "stripe"]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_genuine_request_is_accepted_and_named(scheme):
    assert verify(scheme, signed(scheme)).id


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_previous_secret_is_accepted_too(scheme):
    assert verify(scheme, signed(scheme), secrets=["whsec_bmV3", SECRET])


@pytest.mark.parametrize("scheme", SCHEMES)
def test_another_secret_is_refused(scheme):
    with pytest.raises(SignatureRefused, match="signature is wrong"):
        verify(scheme, signed(scheme), secrets=["whsec_" + "A" * 44])


@pytest.mark.parametrize("scheme", SIGNED)
def test_another_body_is_refused(scheme):
    with pytest.raises(SignatureRefused, match="signature is wrong"):
        verify(scheme, signed(scheme), b'{"id": 8}')


@pytest.mark.parametrize("scheme", TIMED)
@pytest.mark.parametrize("off", [-301, 301])
def test_an_old_or_future_request_is_refused(scheme, off):
    with pytest.raises(SignatureRefused, match="5 minutes"):
        verify(scheme, signed(scheme, at=NOW + off))
    assert verify(scheme, signed(scheme, at=NOW + (off - 1 if off > 0 else off + 1)))


@pytest.mark.parametrize("scheme", TIMED)
def test_another_time_is_refused(scheme):
    headers = {
        name: value.replace(str(NOW), str(NOW + 1))
        for name, value in signed(scheme).items()
    }
    with pytest.raises(SignatureRefused, match="signature is wrong"):
        verify(scheme, headers)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_missing_header_is_named(scheme):
    with pytest.raises(SignatureRefused, match="is missing"):
        verify(scheme, {})


@pytest.mark.parametrize("value", ["", "Basic x", "Bearer", "Bearer é", "bearer x"])
def test_other_authorization_is_refused(value):
    with pytest.raises(SignatureRefused):
        verify("bearer", {"authorization": value})


def test_a_github_message_is_named_by_what_is_signed():
    """Its delivery id is not signed: a replay could carry another one."""
    headers = signed("github")

    first = verify("github", {**headers, "x-github-delivery": "a"})
    assert verify("github", {**headers, "x-github-delivery": "b"}) == first
