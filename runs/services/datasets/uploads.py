"""Uploaded files between their upload and their import."""

import json
import zlib
from datetime import timedelta

from django.contrib.auth.models import User
from django.utils import timezone

from runs.models import Dataset, DatasetUpload
from runs.services.datasets.file_table import FileTable
from runs.services.datasets.mapping import ImportMapping, guess_mapping
from runs.services.datasets.parse_file import parse_dataset_file

UPLOAD_LIFETIME = timedelta(days=1)
COMPRESSION = 1
"""The fastest level."""
MAX_FILE_NAME_CHARS = 200


def store_dataset_upload(
    dataset: Dataset, *, by: User, name: str, content: bytes
) -> DatasetUpload:
    """Parse and store a file in place of an earlier one; raise `DatasetFileRefused`."""
    parsed = parse_dataset_file(name, content)
    table = parsed.table
    mapping = guess_mapping(
        table.columns, dataset.input_names, is_empty=not dataset.examples.exists()
    )
    delete_expired_dataset_uploads()
    upload, _ = DatasetUpload.objects.update_or_create(
        dataset=dataset,
        owner=by,
        defaults={
            "file_name": name.replace("\0", "")[:MAX_FILE_NAME_CHARS],
            "file_format": parsed.file_format,
            "body": zlib.compress(table.model_dump_json().encode(), COMPRESSION),
            "mapping": mapping.model_dump(mode="json"),
        },
    )
    return upload


def find_dataset_upload(dataset: Dataset, *, by: User) -> DatasetUpload | None:
    since = timezone.now() - UPLOAD_LIFETIME
    rows = DatasetUpload.objects.filter(dataset=dataset, owner=by)
    return rows.filter(uploaded_at__gt=since).first()


def load_file_table(upload: DatasetUpload) -> FileTable:
    return FileTable.model_validate(json.loads(zlib.decompress(bytes(upload.body))))


def load_import_mapping(upload: DatasetUpload) -> ImportMapping:
    return ImportMapping.model_validate(upload.mapping)


def save_import_mapping(upload: DatasetUpload, mapping: ImportMapping) -> None:
    upload.mapping = mapping.model_dump(mode="json")
    upload.save(update_fields=["mapping", "uploaded_at"])


def delete_expired_dataset_uploads() -> None:
    """Delete the files that nobody imported in time, of everyone."""
    before = timezone.now() - UPLOAD_LIFETIME
    DatasetUpload.objects.filter(uploaded_at__lte=before).delete()
