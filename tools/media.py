"""Images and sounds in the result of a tool."""

from dataclasses import dataclass
from typing import Any

IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
AUDIO_TYPES = (
    *("audio/wav", "audio/x-wav", "audio/mpeg", "audio/mp3", "audio/mp4", "audio/ogg"),
    *("audio/webm", "audio/flac", "audio/aac"),
)
MODEL_AUDIO_FORMATS = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
}
"""Types of sounds that are sent to models, with their names in Chat Completions."""

MAX_MEDIA = 8
"""Images and sounds of one result."""

MAX_MEDIA_BYTES = 5 << 20
"""Bytes of one of them."""


@dataclass(frozen=True)
class Media:
    """One image or sound."""

    media_type: str
    content: bytes


@dataclass(frozen=True)
class MediaResult:
    """What a tool returned: a JSON value, and what cannot be shown as text."""

    value: Any
    media: tuple[Media, ...]
