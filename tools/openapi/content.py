"""Media types of a request."""

import re
from typing import Any

JSON_TYPE = re.compile(r"application/([\w.+-]*\+)?json")


def get_media_kinds(content: Any) -> dict[str, dict[str, Any]]:
    """Return the media types by name, without parameters such as the charset."""
    if not isinstance(content, dict):
        return {}
    return {
        str(kind).partition(";")[0].strip().lower(): get_object(media)
        for kind, media in content.items()
    }


def get_object(value: Any) -> dict[str, Any]:
    """Return an object as it is, and an empty one for anything else."""
    return value if isinstance(value, dict) else {}
