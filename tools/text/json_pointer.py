"""Picking one value out of a JSON document (RFC 6901)."""

from typing import Any

from tools.errors import ToolFailed


class PointerNotFound(ToolFailed):
    """The document has no value there."""

    def __init__(self, pointer: str, at: str, has: Any) -> None:
        match has:
            case dict():
                names = ", ".join(repr(str(key)) for key in list(has)[:20])
                message = f"there are {names}" if has else "the object is empty"
            case list():
                message = f"the list has {len(has)} items"
            case _:
                message = f"{type(has).__name__} values have no parts"
        super().__init__(f"{pointer!r} finds nothing at {at!r}: {message}.")


class InvalidPointer(ToolFailed):
    """The text is not a JSON pointer."""

    def __init__(self, pointer: str) -> None:
        super().__init__(
            f"{pointer!r} is not a JSON pointer; write '/items/0/name', or nothing "
            "for the whole document."
        )


def parse_json_pointer(pointer: str) -> list[str]:
    """Return the unescaped parts; raise `NotAPointer`."""
    if not pointer:
        return []
    if not pointer.startswith("/"):
        raise InvalidPointer(pointer)
    return [
        part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/")
    ]


def resolve_json_pointer(document: Any, pointer: str) -> Any:
    """Return the value at `pointer`; raise `PointerFindsNothing`."""
    value = document
    for part in parse_json_pointer(pointer):
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and is_index(part) and int(part) < len(value):
            value = value[int(part)]
        else:
            raise PointerNotFound(pointer, part, value)
    return value


def is_index(part: str) -> bool:
    """Whether `part` can be the number of an item; a longer one finds nothing."""
    return part.isdecimal() and len(part) < 10
