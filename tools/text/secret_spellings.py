"""How a server may spell a secret that it sends back."""

import json
import re
from base64 import b64encode, urlsafe_b64encode
from html import escape
from urllib.parse import quote, quote_plus

PERCENT, UNICODE = re.compile(r"%[0-9A-F]{2}"), re.compile(r"\\u([0-9a-f]{4})")
"""As Python writes them; other languages write the letters in the other case."""


def list_secret_spellings(secret: str) -> set[str]:
    """Return the secret as it is, and as in Base64, web addresses, JSON and HTML."""
    if not secret:
        return set()
    in_json = {
        json.dumps(secret, ensure_ascii=is_ascii)[1:-1] for is_ascii in (True, False)
    }
    in_json |= {one.replace("/", "\\/") for one in in_json}
    in_addresses = {quote(secret, safe=""), quote_plus(secret)}
    raw = secret.encode("utf-8", "surrogatepass")
    return {
        secret,
        *(
            encode(raw).decode().rstrip("=")
            for encode in (b64encode, urlsafe_b64encode)
        ),
        *(PERCENT.sub(lambda m: m[0].lower(), one) for one in in_addresses),
        *(UNICODE.sub(lambda m: f"\\u{m[1].upper()}", one) for one in in_json),
        *(escape(secret, quote=True), escape(secret, quote=False)),
        *in_addresses,
        *in_json,
    }
