"""What becomes of the result of a call: texts, images and sounds; its progress."""

import binascii
from base64 import b64decode
from typing import Any

from tools.mcp.errors import ServerSentTooMuch
from tools.mcp.wire import MAX_BYTES
from tools.media import (
    AUDIO_TYPES,
    IMAGE_TYPES,
    MAX_MEDIA,
    MAX_MEDIA_BYTES,
    Media,
    MediaResult,
)


def parse_call_result(result: dict[str, Any], where: str) -> Any:
    """Return what a model reads of a result: its texts, or else its structure.

    It is a `MediaResult` if there are images or sounds.
    """
    content = result.get("content")
    media: list[Media] = []
    parts = content if isinstance(content, list) else []
    texts = [text for part in parts if (text := format_result_part(part, media))]
    if sum(map(len, texts)) > MAX_BYTES:
        raise ServerSentTooMuch(where, MAX_BYTES)
    structure = result.get("structuredContent")
    value = "\n".join(texts) if texts or structure is None else structure
    return MediaResult(value, tuple(media)) if media else value


def format_result_part(part: Any, media: list[Media]) -> str:
    """Return one part of a result as text; an image or sound is added to `media`."""
    if not isinstance(part, dict):
        return ""
    kind = part.get("type")
    if kind == "text":
        return str(part.get("text", ""))
    if kind == "resource_link":
        return f"[{part.get('name', 'a resource')}: {part.get('uri', '')}]"
    if kind == "resource" and isinstance(part.get("resource"), dict):
        inner = part["resource"]
        if "text" in inner:
            return str(inner["text"])
        if "blob" not in inner:
            return f"[{inner.get('uri', '')}]"
        part = {"mimeType": inner.get("mimeType"), "data": inner["blob"]}
    return format_media(part, kind, media)


def format_media(part: dict[str, Any], kind: Any, media: list[Media]) -> str:
    """Return what stands for data in the text, and keep it if it can be shown."""
    name, data = str(part.get("mimeType") or kind), part.get("data", "")
    size = len(str(data)) * 3 // 4
    if name not in IMAGE_TYPES + AUDIO_TYPES:
        return f"[{name}, {size:,} bytes, not shown]"
    if size > MAX_MEDIA_BYTES + 3:
        return f"[{name}, {size:,} bytes, too large to be shown]"
    if len(media) >= MAX_MEDIA:
        return f"[{name}, {size:,} bytes, one of too many to be shown]"
    try:
        content = b64decode(data, validate=True)
    except (binascii.Error, ValueError, TypeError):
        return f"[{name}, not readable]"
    media.append(Media(name, content))
    noun = "image" if name in IMAGE_TYPES else "sound"
    return f"[{noun} {len(media)}: {name}, {len(content):,} bytes]"


def format_progress(params: dict[str, Any]) -> str:
    """Return a report of progress as a line, such as `reading (2 of 3)`."""
    message, total = params.get("message"), format_progress_count(params.get("total"))
    count = format_progress_count(params.get("progress"))
    count = f"{count} of {total}" if count and total else count
    if not isinstance(message, str) or not message:
        return count
    return f"{message} ({count})" if total else message


def format_progress_count(value: Any) -> str:
    """Return a number as text, empty for anything else."""
    if not isinstance(value, int | float) or not abs(value) < 1e15:
        return ""
    return f"{value:,.2f}".rstrip("0").rstrip(".")
