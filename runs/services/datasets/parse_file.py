"""An uploaded file: its text, its format and its table."""

from collections.abc import Callable
from typing import NamedTuple

from django.utils.formats import number_format
from django.utils.translation import gettext as _

from runs.services.datasets.file_table import MAX_FILE_BYTES, FileTable
from runs.services.datasets.parse_csv import parse_csv
from runs.services.datasets.parse_jsonl import (
    looks_like_evals,
    parse_evals,
    parse_jsonl,
)
from runs.services.datasets.parse_promptfoo import parse_promptfoo
from runs.services.errors import DatasetFileRefused

PARSERS: dict[str, Callable[[str], FileTable]] = {
    "csv": parse_csv,
    "jsonl": parse_jsonl,
    "evals": parse_evals,
    "promptfoo": parse_promptfoo,
}
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


class ParsedFile(NamedTuple):
    file_format: str
    table: FileTable


def parse_dataset_file(name: str, content: bytes) -> ParsedFile:
    """Return the format and the table of a file; raise `DatasetFileRefused`."""
    check_file_size(len(content))
    text = decode_file(content)
    if not text.strip():
        raise DatasetFileRefused(_("The file is empty."))
    file_format = find_file_format(name, text)
    return ParsedFile(file_format, PARSERS[file_format](text))


def check_file_size(size: int) -> None:
    """Raise `DatasetFileRefused` if a file is too large."""
    if size > MAX_FILE_BYTES:
        raise DatasetFileRefused(
            _("The file has %(size)s MB, at most %(limit)s MB are allowed. Split it.")
            % {
                "size": number_format(size / 1_000_000, 1),
                "limit": MAX_FILE_BYTES // 1_000_000,
            }
        )


def decode_file(content: bytes) -> str:
    """Return the text with plain line ends."""
    encoding = "utf-16" if content.startswith(UTF16_MARKS) else "utf-8-sig"
    refused = DatasetFileRefused(
        _("The file is not UTF-8 text. Save it as UTF-8 and try again.")
    )
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        raise refused from None
    if "\0" in text:  # UTF-16 without a mark, or no text at all
        raise refused
    return text.replace("\r\n", "\n").replace("\r", "\n")


def find_file_format(name: str, text: str) -> str:
    """Return a key of `PARSERS`, by the name of the file and how it begins."""
    ending = name.lower().rpartition(".")[2]
    if ending in ("yaml", "yml"):
        return "promptfoo"
    is_json = text.lstrip().startswith(("{", "["))
    if ending not in ("json", "jsonl") and (ending in ("csv", "tsv") or not is_json):
        return "csv"
    return "evals" if looks_like_evals(text) else "jsonl"
