"""Leaving a page that has unsaved changes."""

from tests.support.timing import wait_until


def leave(page) -> list[str]:
    """Click a link of the navigation; return a list that fills with questions."""
    asked: list[str] = []

    def stay(dialog) -> None:
        asked.append(dialog.type)
        dialog.dismiss()

    page.once("dialog", stay)
    page.locator("header nav a:visible").nth(1).click(no_wait_after=True)
    return asked


def leave_and_stay(page) -> None:
    """Click a link of the navigation, and stay when the page asks."""
    asked = leave(page)
    wait_until(lambda: asked or page.wait_for_timeout(50))
    assert asked == ["beforeunload"]
