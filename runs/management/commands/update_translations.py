"""Collect texts to translate: `manage.py update_translations` (needs GNU gettext)."""

from typing import Any

from django.conf import settings
from django.core.management.commands.makemessages import Command as MakeMessages

IGNORED_PATHS = [
    ".venv",
    "node_modules",
    "tests",
    "docs",
    "var",
    "vendor",
    "staticfiles",
]


class Command(MakeMessages):
    help = "Collect the texts to translate into agentsite/locale."
    xgettext_options = [*MakeMessages.xgettext_options, "--keyword=translatable"]

    def handle(self, *args: Any, **options: Any) -> None:
        """Leave out line numbers, which would change with every commit."""
        settings.LOCALE_PATHS = [settings.TRANSLATION_SOURCES]
        options |= {
            "locale": ["zh_Hans"],
            "add_location": "file",
            "ignore_patterns": IGNORED_PATHS,
            "no_obsolete": True,
            "no_wrap": False,
        }
        for domain in ("django", "djangojs"):
            super().handle(*args, **options | {"domain": domain})
