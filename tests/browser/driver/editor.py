"""Opening the editor of a prompt or of code, which is loaded on the first use."""

from playwright.sync_api import Locator, expect


def open_editor(frame: Locator) -> Locator:
    """Click into the editor inside `frame`; return its text once it has the focus."""
    text = frame.locator(".cm-content")
    if not text.is_visible():
        frame.locator(".editor-field textarea").click()
    expect(text).to_be_focused()
    return text
