"""Sealing secrets before they are stored, and opening them at call time.

Keys come from `AGENTSITE_ENCRYPTION_KEYS`, the newest first; older ones still open.
"""

from functools import cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings


class SecretUnreadable(Exception):
    """A stored secret cannot be opened with the keys of this installation."""

    def __init__(self) -> None:
        super().__init__(
            "A stored secret cannot be read with the encryption keys of this "
            "installation. Type it in again, or put the old key back into "
            "AGENTSITE_ENCRYPTION_KEYS."
        )


def seal(secret: str) -> str:
    """Return `secret` encrypted, as text for a column; an empty secret stays empty."""
    return (
        _get_fernet(tuple(settings.ENCRYPTION_KEYS)).encrypt(secret.encode()).decode()
        if (secret)
        else ""
    )


def unseal(token: str) -> str:
    """Return the secret in `token`; raise `SecretUnreadable` if no key opens it."""
    if not token:
        return ""
    try:
        return (
            _get_fernet(tuple(settings.ENCRYPTION_KEYS))
            .decrypt(token.encode())
            .decode()
        )
    except InvalidToken:
        raise SecretUnreadable from None


def is_sealed_with_newest_key(token: str) -> bool:
    try:
        _get_fernet(tuple(settings.ENCRYPTION_KEYS[:1])).decrypt(token.encode())
    except InvalidToken:
        return False
    return True


@cache
def _get_fernet(keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(key) for key in keys])
