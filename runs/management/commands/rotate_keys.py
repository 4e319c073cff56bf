"""`rotate_keys`: reseal every stored secret with the newest encryption key."""

import os
from pathlib import Path
from typing import Any

from cryptography.fernet import Fernet
from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from runs.management.site_command import SiteCommand
from tools.services.rotate_keys import rotate_keys


class Command(SiteCommand):
    help = (
        "Encrypt every stored secret with the newest encryption key. To rotate: add a "
        "key with --new-key, restart Agentsite, and run the command again without it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--new-key", action="store_true", help="Only add a new key."
        )

    def handle(self, *_: Any, new_key: bool, **__: Any) -> None:
        if new_key:
            self.stdout.write(add_encryption_key(settings.DATA_DIR / "encryption_keys"))
            return
        done = rotate_keys()
        self.stdout.write(
            f"Secrets encrypted with the newest key: {done.resealed} now, "
            f"{done.already_newest} before."
        )
        if done.unreadable:
            raise CommandError(
                "No key decrypts these secrets. Restore the old keys, or enter the "
                f"secrets again: {'; '.join(done.unreadable)}."
            )


def add_encryption_key(path: Path) -> str:
    """Add a new key before those in the file, atomically; return what to do next."""
    if not settings.KEYS_ARE_FILES:
        raise CommandError(
            "The keys come from AGENTSITE_ENCRYPTION_KEYS. Add a new one at its "
            f"beginning, such as {Fernet.generate_key().decode()}, restart Agentsite, "
            "and run rotate_keys without --new-key."
        )
    draft = path.with_name(f".{path.name}-new")
    draft.touch(mode=0o600)
    draft.write_text(f"{Fernet.generate_key().decode()}\n{path.read_text()}")
    os.replace(draft, path)
    return (
        f"A new key was added to {path}. Restart Agentsite, so that all processes use "
        "it, then run rotate_keys."
    )
