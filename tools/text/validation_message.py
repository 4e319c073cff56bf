"""The sentence in an error of pydantic."""


def strip_value_error(message: str) -> str:
    """Return the message of a `ValueError` that a validator raised as it was."""
    return message.removeprefix("Value error, ")
