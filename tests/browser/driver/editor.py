"""Using the editor of a prompt or of code: a text field over its lines in colors."""

from playwright.sync_api import Locator, expect

OPTIONS = ".editor-options:popover-open"
"""The list of completions."""


def open_editor(frame: Locator) -> Locator:
    """Click into the editor inside `frame`; return its text field, which has focus."""
    text = frame.locator("textarea")
    text.click()
    expect(text).to_be_focused()
    return text
