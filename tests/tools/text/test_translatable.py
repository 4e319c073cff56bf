"""Sentences that are stored in English and shown in the language of a viewer."""

import pytest

from tools.text.translatable import (
    change_text,
    decode_stored_text,
    encode_stored_text,
    join_sentences,
    translatable,
    translate_text,
)

CATALOG = {"Not found: %(texts)s.": "未找到：%(texts)s。", "Closed.": "已关闭。"}


def chinese(msgid: str) -> str:
    return CATALOG.get(msgid, msgid)


def store(text: str) -> str:
    return decode_stored_text(encode_stored_text(text))


def test_a_sentence_is_english_text_until_it_is_translated():
    text = store(translatable("Not found: %(texts)s.", texts="100% \x1e x"))

    assert text == "Not found: 100% \ufffd x."
    assert translate_text(text, chinese) == "未找到：100% \x1e x。"


def test_a_stored_sentence_begins_with_its_english_text():
    stored = encode_stored_text(translatable("Closed."))

    assert stored.startswith("Closed.\x1e")


@pytest.mark.parametrize(
    "text", ["", "Not found: x.", "Closed.", 'He said: "%s".', "[1]", "a\nb"]
)
def test_other_texts_are_stored_and_shown_as_they_are(text):
    assert encode_stored_text(text) == text
    assert translate_text(store(text), chinese) == text


def test_a_text_of_a_model_cannot_pose_as_a_sentence():
    forged = encode_stored_text(translatable("Closed."))

    assert translate_text(store(forged), chinese).startswith("Closed.\ufffd")


@pytest.mark.parametrize("rest", ["", "x", "{}x", "[1]", '[["a"]]', '[["", {}]]'])
def test_an_older_text_with_a_separator_is_left_as_it_is(rest):
    stored = f"a\x1e{rest}"

    assert decode_stored_text(stored) == stored


def test_sentences_are_joined_and_texts_of_others_among_them_are_kept():
    text = join_sentences(["", translatable("Closed."), "Fine.\n\n", store("Bye.")])

    assert text == "Closed. Fine.\n\nBye."
    assert translate_text(store(text), chinese) == "已关闭。 Fine.\n\nBye."
    assert encode_stored_text(join_sentences(["Fine.", "Bye."])) == "Fine. Bye."
    assert join_sentences([]) == ""


def test_values_are_changed_and_the_sentence_stays():
    text = translatable("Not found: %(texts)s.", texts="a\0")
    cleaned = change_text(text, lambda value: value.replace("\0", "?"))

    assert translate_text(cleaned, chinese) == "未找到：a?。"
    assert change_text("a", str.upper) == "A"


def test_an_error_keeps_its_sentence():
    error = ValueError(translatable("Closed."))

    assert translate_text(str(error), chinese) == "已关闭。"
