"""Headers of requests that belong to the connection, and can be set by nobody."""

RESERVED_HEADERS = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "http2-settings",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""In lower case. A second one lets two servers read a request differently."""


def is_reserved_header(name: str) -> bool:
    return name.strip().lower() in RESERVED_HEADERS
