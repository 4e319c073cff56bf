"""The catalogs of messages are complete, and keep the placeholders."""

import re
from pathlib import Path

import polib
import pytest

LOCALES = Path(__file__).parents[2] / "agentsite" / "locale"
CATALOGS = sorted(LOCALES.glob("*/LC_MESSAGES/*.po"))
PLACEHOLDER = re.compile(r"%\(\w+\)[sd]|\{\w+\}")


@pytest.mark.parametrize("path", CATALOGS, ids=lambda path: path.stem)
def test_each_message_is_translated_with_its_placeholders(path):
    wrong = []
    for entry in polib.pofile(str(path)):
        if entry.obsolete:
            continue
        texts = list(entry.msgstr_plural.values()) or [entry.msgstr]
        wanted = set(PLACEHOLDER.findall(entry.msgid_plural or entry.msgid))
        if entry.fuzzy or any(
            not text or set(PLACEHOLDER.findall(text)) != wanted for text in texts
        ):
            wrong.append(entry.msgid)

    assert wrong == []


def test_there_are_catalogs():
    assert len(CATALOGS) >= 2
