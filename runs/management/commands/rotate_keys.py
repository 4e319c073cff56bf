"""`rotate_keys`: seal every stored secret again, under the newest encryption key."""

import os
from pathlib import Path
from typing import Any

from cryptography.fernet import Fernet
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from tools.services.rotate_keys import rotate_keys


class Command(BaseCommand):
    """Rotate, or make the key to rotate to."""

    help = (
        "Seal every stored secret again under the newest encryption key. With "
        "--new-key, first make that key, in the data folder; then restart Agentsite "
        "and run the command again without it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the switch."""
        parser.add_argument("--new-key", action="store_true", help="Make a new key.")

    def handle(self, *_: Any, new_key: bool, **__: Any) -> None:
        """Say what was done, and what is to do."""
        if new_key:
            self.stdout.write(add_key(settings.DATA_DIR / "encryption_keys"))
            return
        done = rotate_keys()
        self.stdout.write(
            f"{done.sealed_again} secrets are sealed with the newest key now, "
            f"{done.were_newest} were before."
        )
        if done.unreadable:
            raise CommandError(
                "No key opens these; keep the old keys, or type the secrets in "
                f"again: {'; '.join(done.unreadable)}."
            )


def add_key(path: Path) -> str:
    """Put a new key before those in the file, whole or not at all; say what is next."""
    if os.environ.get("AGENTSITE_ENCRYPTION_KEYS"):
        raise CommandError(
            "The keys come from AGENTSITE_ENCRYPTION_KEYS. Put a new one in front "
            f"there, such as {Fernet.generate_key().decode()}, restart Agentsite, and "
            "run rotate_keys without --new-key."
        )
    draft = path.with_name(f".{path.name}-new")
    draft.touch(mode=0o600)
    draft.write_text(f"{Fernet.generate_key().decode()}\n{path.read_text()}")
    os.replace(draft, path)
    return (
        f"A new key stands first in {path}. Restart Agentsite, so that all of it knows "
        "the key, and run rotate_keys."
    )
