"""Documents that are kept for an hour."""

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.tools.rows import make_user
from tools.models import UploadedDocument
from tools.openapi.document import DocumentUnreadable, OpenApiDocument
from tools.openapi.uploads import (
    LIFETIME,
    UploadCleaner,
    current_uploads,
    load_document,
    store_upload,
)

pytestmark = pytest.mark.django_db
BODY = {"openapi": "3.1.0", "x": ["é", "\ud800", 2**70, None]}


def test_a_document_comes_back_as_it_was():
    upload = store_upload(OpenApiDocument(BODY), by=make_user())

    stored = current_uploads(make_user()).get(pk=upload.pk)
    assert load_document(stored).body == BODY


def test_a_document_that_is_nested_too_deeply_is_refused():
    body = {}
    for _depth in range(100_000):
        body = {"x": body}

    with pytest.raises(DocumentUnreadable, match="nested too deeply"):
        store_upload(OpenApiDocument(body), by=make_user())


def test_workers_delete_expired_documents_now_and_then():
    old, new = (store_upload(OpenApiDocument(BODY), by=make_user()) for _ in "ab")
    expired = UploadedDocument.objects.filter(pk=old.pk)
    expired.update(uploaded_at=timezone.now() - LIFETIME - timedelta(seconds=1))
    cleaner = UploadCleaner()

    cleaner.clean_if_due()
    new_rows = UploadedDocument.objects.filter(pk=new.pk)
    assert list(UploadedDocument.objects.all()) == [new]

    new_rows.update(uploaded_at=timezone.now() - LIFETIME)
    cleaner.clean_if_due()
    assert new_rows.exists()
