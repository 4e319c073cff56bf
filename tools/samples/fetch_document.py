"""Fetching an OpenAPI document from a URL, through the guard of tools."""

import re
from urllib.parse import urlsplit

from django.contrib.auth.models import User

from tools.errors import Interrupted, ToolFailed
from tools.models import UploadedDocument
from tools.net.deadline import Deadline
from tools.net.http_exchange import Request, send_request
from tools.net.outbound_policy import get_net_policy
from tools.openapi.document import MAX_BYTES, DocumentRefused, parse_openapi_document
from tools.openapi.uploads import store_upload

FETCH_SECONDS = 10.0
DOCUMENT_PATH = re.compile(r"(?i)\.(json|ya?ml)$|openapi|swagger|api-docs")


def fetch_openapi_document(url: str, *, by: User) -> UploadedDocument | None:
    """Store the document at `url` for the selection of its operations.

    None if the URL does not look like that of a document, if there is none, or if the
    guard refuses it. No credential is sent.
    """
    parts = urlsplit(url)
    if not DOCUMENT_PATH.search(parts.path):
        return None
    try:
        response = send_request(
            Request(url),
            policy=get_net_policy("tool"),
            deadline=Deadline(seconds=FETCH_SECONDS),
            max_bytes=MAX_BYTES,
        )
        if response.status >= 300:
            return None
        document = parse_openapi_document(response.text)
    except (ToolFailed, Interrupted, DocumentRefused):
        return None
    return store_upload(document, by=by, server_url="", credential=None)
