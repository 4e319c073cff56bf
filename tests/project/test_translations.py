"""The catalogs of messages are complete, and keep the placeholders."""

import re
from pathlib import Path

import polib
import pytest

from tests.project.test_wording import texts_of_code

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


def test_each_marked_text_of_the_code_is_in_a_catalog():
    """Texts that `update_translations` does not find stay English: in an f-string."""
    entries = [entry for path in CATALOGS for entry in polib.pofile(str(path))]
    known = {
        text
        for entry in entries
        if not entry.obsolete
        for text in (entry.msgid, entry.msgid_plural, entry.msgctxt)
    }

    missing = [
        text
        for text in texts_of_code()
        if ".py:" in text.place and text.words not in known
    ]

    assert missing == []


def test_there_are_catalogs():
    assert len(CATALOGS) >= 2
