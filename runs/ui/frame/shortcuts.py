"""The keyboard shortcuts of all pages, for the dialog that "?" opens.

A page that handles a key declares it here, under the name of its URL.
"""

from typing import NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


class Shortcut(NamedTuple):
    """One key, or several that belong together, and what it does."""

    keys: tuple[str, ...]
    words: str | Promise
    is_sequence: bool = False
    """Whether the keys are pressed one after the other."""


class ShortcutGroup(NamedTuple):
    """The shortcuts of a page, or of all pages."""

    label: str | Promise
    shortcuts: tuple[Shortcut, ...]


JUMPS = {
    "home": "h",
    "run-list": "r",
    "approval-list": "a",
    "agent-list": "e",
    "tool-list": "t",
    "chat": "c",
    "schedule-list": "s",
    "prompt-list": "p",
    "provider-list": "m",
}
"""URL name of a page in the navigation, and the letter after "g" that opens it."""

ALL_PAGES = ShortcutGroup(
    _("All pages"),
    (
        Shortcut(("Ctrl K",), _("Search or jump to")),
        Shortcut(("/",), _("Search on this page, or everywhere")),
        Shortcut(("g", "h"), _("Home"), is_sequence=True),
        Shortcut(("g", "r"), _("Runs"), is_sequence=True),
        Shortcut(("g", "a"), _("Approvals"), is_sequence=True),
        Shortcut(("g", "e"), _("Agents"), is_sequence=True),
        Shortcut(("g", "t"), _("Tools"), is_sequence=True),
        Shortcut(("g", "c"), _("Chat"), is_sequence=True),
        Shortcut(("g", "s"), _("Schedules"), is_sequence=True),
        Shortcut(("g", "p"), _("Prompts"), is_sequence=True),
        Shortcut(("g", "m"), _("Providers"), is_sequence=True),
        Shortcut(("g", "n"), _("Notifications"), is_sequence=True),
        Shortcut(("Esc",), _("Close a menu, dialog or notification")),
        Shortcut(("?",), _("Show keyboard shortcuts")),
    ),
)
_EDITOR = ShortcutGroup(_("Editor"), (Shortcut(("Ctrl S",), _("Save")),))
_CHAT = ShortcutGroup(
    _("Chat"),
    (
        Shortcut(("Enter",), _("Send the message")),
        Shortcut(("Shift Enter",), _("New line")),
        Shortcut(("Ctrl O",), _("New conversation")),
        Shortcut(("↑",), _("Edit the last message, in an empty box")),
        Shortcut(("Esc",), _("Stop the answer")),
    ),
)
_TOOL = ShortcutGroup(
    _("Tool"),
    (
        Shortcut(("Ctrl S",), _("Save")),
        Shortcut(("Ctrl Enter",), _("Try the tool with these arguments")),
    ),
)
PAGE_SHORTCUTS = {
    "run-detail": ShortcutGroup(
        _("Run"),
        (
            Shortcut(("j", "k"), _("Next and previous step")),
            Shortcut(("e",), _("Next error")),
            Shortcut(("f",), _("Fork at the selected step, or the whole run")),
            Shortcut(("/",), _("Search in this run")),
            Shortcut(("h", "H"), _("Next and previous match")),
            Shortcut(("t",), _("List or timeline")),
            Shortcut(("1–6",), _("Tabs of the selected step")),
            Shortcut(("a",), _("Needs attention: answer, resume or fork")),
            Shortcut(("n",), _("Follow the latest step")),
            Shortcut(("[", "]"), _("Previous and next run in the list")),
        ),
    ),
    "chat": _CHAT,
    "chat-agent": _CHAT,
    "chat-conversation": _CHAT,
    "agent-edit": _EDITOR,
    "agent-create": _EDITOR,
    "tool-create": _TOOL,
    "tool-detail": _TOOL,
    "prompt-detail": _EDITOR,
    "prompt-create": _EDITOR,
}


def list_shortcuts(page: str = "") -> list[ShortcutGroup]:
    """Return the shortcuts of a page and of all pages; without a page, everything."""
    if page:
        own = PAGE_SHORTCUTS.get(page)
        return [own, ALL_PAGES] if own else [ALL_PAGES]
    every = dict.fromkeys(PAGE_SHORTCUTS.values())
    return [ALL_PAGES, *every]
