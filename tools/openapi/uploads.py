"""Uploaded documents: kept for an hour, so that pages need not send them back."""

import json
import time
import zlib
from dataclasses import dataclass
from datetime import timedelta

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from tools.models import Credential, UploadedDocument
from tools.openapi.document import DocumentUnreadable, OpenApiDocument

LIFETIME = timedelta(hours=1)
MAX_UPLOADS = 5
"""Of one person; the oldest go first."""

CLEANUP_SECONDS = 600.0
COMPRESSION = 1
"""The fastest level: the others save little of a document."""


def store_upload(
    document: OpenApiDocument,
    *,
    by: User,
    server_url: str = "",
    credential: Credential | None = None,
) -> UploadedDocument:
    """Store a document; raise `DocumentUnreadable` if it is nested too deeply."""
    try:
        text = json.dumps(document.body, separators=(",", ":"))
    except RecursionError:
        raise DocumentUnreadable(_("it is nested too deeply")) from None
    delete_expired_uploads()
    upload = UploadedDocument.objects.create(
        owner=by,
        body=zlib.compress(text.encode(), COMPRESSION),
        server_url=server_url,
        credential=credential,
    )
    newest = UploadedDocument.objects.filter(owner=by).order_by("-pk")
    kept = list(newest.values_list("pk", flat=True)[:MAX_UPLOADS])
    newest.exclude(pk__in=kept).delete()
    return upload


def load_document(upload: UploadedDocument) -> OpenApiDocument:
    return OpenApiDocument(json.loads(zlib.decompress(bytes(upload.body))))


def current_uploads(user: User) -> QuerySet[UploadedDocument]:
    """Return the uploads of a person that have not expired."""
    since = timezone.now() - LIFETIME
    return UploadedDocument.objects.filter(owner=user, uploaded_at__gt=since)


@dataclass
class UploadCleaner:
    """When a worker deletes expired documents next, on its monotonic clock."""

    due: float = 0.0

    def clean_if_due(self) -> None:
        if time.monotonic() >= self.due:
            delete_expired_uploads()
            self.due = time.monotonic() + CLEANUP_SECONDS


def delete_expired_uploads() -> None:
    """Delete what is older than `LIFETIME`, of everyone."""
    before = timezone.now() - LIFETIME
    UploadedDocument.objects.filter(uploaded_at__lte=before).delete()
