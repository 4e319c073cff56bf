"""The secrets in a backup: those that are files of the data folder."""

import os
from pathlib import Path

from django.conf import settings

from runs.services.backup.manifest import get_key_fingerprints
from runs.services.errors import BackupError

KEYS_FILE, SECRET_KEY_FILE = "encryption_keys", "secret_key"


def list_secret_files() -> list[Path]:
    """Return the secret files in use: none of what the environment sets."""
    in_use = {
        KEYS_FILE: settings.KEYS_ARE_FILES,
        SECRET_KEY_FILE: settings.SECRET_KEY_IS_FILE,
    }
    return [settings.DATA_DIR / name for name, is_used in in_use.items() if is_used]


def check_keys(fingerprints: list[str], *, has_keys: bool) -> None:
    """Refuse a backup whose stored credentials could not be decrypted here."""
    if has_keys and settings.KEYS_ARE_FILES:
        return
    if set(fingerprints) <= set(get_key_fingerprints(settings.ENCRYPTION_KEYS)):
        return
    where = (
        "They are in the file secrets/encryption_keys of the backup, a ZIP archive. "
        if has_keys
        else ""
    )
    raise BackupError(
        "This site does not have the encryption keys of the backup, so stored "
        f"credentials could not be decrypted. {where}Add them to "
        "AGENTSITE_ENCRYPTION_KEYS, or use --without-keys and enter the credentials "
        "again."
    )


def add_encryption_keys(text: str) -> None:
    """Put the keys of a backup before those in the file; none is removed."""
    path = settings.DATA_DIR / KEYS_FILE
    write_secret(path, dict.fromkeys([*text.split(), *path.read_text().split()]))


def replace_secret_key(text: str) -> None:
    write_secret(settings.DATA_DIR / SECRET_KEY_FILE, [text.strip()])


def write_secret(path: Path, lines: "dict[str, None] | list[str]") -> None:
    """Replace a secret file, completely or not at all."""
    draft = path.with_name(f".{path.name}-new")
    draft.touch(mode=0o600)
    with draft.open("w") as file:
        file.write("\n".join(lines) + "\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)
