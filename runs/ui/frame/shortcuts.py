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
_PROMPT_TEXT = (
    Shortcut(("{",), _("In a prompt: show variables")),
    Shortcut(("Tab",), _("In a prompt: complete the variable")),
)
_PLAYGROUND = ShortcutGroup(_("Editor"), _PROMPT_TEXT)
_EDITOR = ShortcutGroup(_("Editor"), (Shortcut(("Ctrl S",), _("Save")), *_PROMPT_TEXT))
_NEW_AGENT = ShortcutGroup(
    _("Editor"),
    (
        *_EDITOR.shortcuts,
        Shortcut(("↑", "↓", "←", "→"), _("Move through the list of tools")),
    ),
)
_AGENT = ShortcutGroup(
    _("Editor"),
    (
        *_NEW_AGENT.shortcuts,
        Shortcut(("Enter",), _("Send the test message")),
        Shortcut(("Shift Enter",), _("New line")),
    ),
)
_CHAT = ShortcutGroup(
    _("Chat"),
    (
        Shortcut(("Enter",), _("Send the message")),
        Shortcut(("Shift Enter",), _("New line")),
        Shortcut(("Ctrl O",), _("New conversation")),
        Shortcut(("↑",), _("Edit the last message, in an empty box")),
        Shortcut(("Esc",), _("Stop the answer")),
        Shortcut(("j", "k"), _("Next and previous conversation")),
        Shortcut(("x",), _("Select the conversation")),
    ),
)
CHAT_PAGES = ("chat", "chat-agent", "chat-conversation", "chat-say")
CALM_CHAT_SHORTCUTS = [
    _CHAT,
    ShortcutGroup(
        _("All pages"),
        (
            Shortcut(("/",), _("Search conversations")),
            Shortcut(("Esc",), _("Close a menu, dialog or notification")),
            Shortcut(("?",), _("Show keyboard shortcuts")),
        ),
    ),
]
"""For people who only chat: their frame has no navigation and no palette."""
_PYTHON_CODE = (
    Shortcut(("Ctrl Space",), _("In Python code: show completions")),
    Shortcut(("Tab",), _("In Python code: complete the word, or indent")),
    Shortcut(("Shift Tab",), _("In Python code: remove an indent")),
    Shortcut(("Esc", "Tab"), _("In Python code: leave the editor"), is_sequence=True),
)
_TOOL = ShortcutGroup(
    _("Tool"),
    (
        Shortcut(("Ctrl S",), _("Save")),
        Shortcut(("Ctrl Enter",), _("Try the tool with these arguments")),
        *_PYTHON_CODE,
    ),
)
_TOOL_FORM = ShortcutGroup(_("Form"), (Shortcut(("Ctrl S",), _("Save")), *_PYTHON_CODE))
_NEW_RUN = Shortcut(("n",), _("New run"))
_RUN_LIST = ShortcutGroup(
    _("Runs"),
    (
        Shortcut(("j", "k"), _("Next and previous run")),
        Shortcut(("Space",), _("Show or hide the run beside the list")),
        Shortcut(("Enter",), _("Open the run")),
        Shortcut(("x",), _("Select the run")),
        Shortcut(("X",), _("Select all runs up to this one")),
        Shortcut(("f",), _("Go to the filters")),
        Shortcut(
            ("Shift ←", "Shift →", "Enter"),
            _("In the bars: select a time, and show its runs"),
        ),
        Shortcut(("/",), _("Search runs")),
        _NEW_RUN,
    ),
)
_LIST = ShortcutGroup(
    _("List"),
    (
        Shortcut(("j", "k"), _("Next and previous row")),
        Shortcut(("Enter",), _("Open the row")),
        Shortcut(("x",), _("Select the row")),
        Shortcut(("X",), _("Select all rows up to this one")),
    ),
)
_LIST_PAGES = (
    *("agent-list", "approval-list", "approval-detail", "schedule-list", "tool-list"),
    *("prompt-list", "provider-list", "dataset-list", "evaluator-list", "rule-list"),
    *("experiment-list", "queue-list", "queue-detail", "webhook-list", "hook-list"),
)
_DATASET = ShortcutGroup(
    _("Dataset"),
    (
        Shortcut(("↑", "↓", "←", "→"), _("Move through the cells")),
        Shortcut(("Enter",), _("Edit the cell, or save it")),
        Shortcut(("Tab",), _("Save and edit the next cell")),
        Shortcut(("Esc",), _("Undo the edit")),
        Shortcut(("a",), _("Add an example")),
        Shortcut(("Ctrl S",), _("Save the version")),
    ),
)
_ANNOTATION = ShortcutGroup(
    _("Annotation"),
    (
        Shortcut(("1–5",), _("Score")),
        Shortcut(("q", "w", "r", "t"), _("Labels, with the letters beside them")),
        Shortcut(("c",), _("Comment")),
        Shortcut(("e",), _("Correct the answer")),
        Shortcut(("s",), _("Skip the run")),
        Shortcut(("z",), _("Undo the last annotation")),
        Shortcut(("Enter",), _("Submit")),
        Shortcut(("Ctrl Enter",), _("Submit from a field")),
    ),
)
_FORM = ShortcutGroup(_("Form"), (Shortcut(("Ctrl S",), _("Save")),))
_EXPERIMENT_FORM = ShortcutGroup(
    _("Form"), (Shortcut(("Ctrl S",), _("Start the experiment")),)
)
_ADMIN_MODELS = ("auth_user", "auth_group", "tools_credential", "tools_mcpserver")
_FORM_PAGES = (
    *("agent-tool", "sub-agent", "provider-create", "provider-detail"),
    *("provider-model", "provider-model-create", "schedule-create", "schedule-edit"),
    *("webhook-create", "webhook-edit", "hook-create", "hook-edit"),
    *("queue-create", "queue-edit", "dataset-create", "dataset-edit"),
    *("rule-create", "rule-edit", "evaluator-create", "evaluator-detail"),
    *("dataset-example", "dataset-example-create", "run-dataset"),
    *("agent-gate", "notification-settings", "retention"),
    *(f"{model}_{verb}" for model in _ADMIN_MODELS for verb in ("add", "change")),
)
PAGE_SHORTCUTS = {
    **dict.fromkeys(_FORM_PAGES, _FORM),
    **dict.fromkeys(_LIST_PAGES, _LIST),
    **dict.fromkeys(CHAT_PAGES, _CHAT),
    "home": ShortcutGroup(_("Home"), (_NEW_RUN,)),
    "run-list": _RUN_LIST,
    "dataset-detail": _DATASET,
    "queue-item": _ANNOTATION,
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
    "agent-publish": ShortcutGroup(
        _("Publish"),
        (
            Shortcut(("j", "k"), _("Next and previous replay")),
            Shortcut(("Enter",), _("Compare the replay with the recorded run")),
        ),
    ),
    "experiment-create": _EXPERIMENT_FORM,
    "experiment-detail": ShortcutGroup(
        _("Experiment"),
        (
            Shortcut(("j", "k"), _("Next and previous example")),
            Shortcut(("h", "l"), _("Previous and next candidate")),
            Shortcut(("w",), _("Next cell that is worse")),
            Shortcut(("Enter",), _("Open the run")),
            Shortcut(("c",), _("Compare with the baseline")),
            Shortcut(("f",), _("Fork the run")),
            Shortcut(("e",), _("Edit the example")),
            Shortcut(("1", "2"), _("Your score: pass or fail")),
        ),
    ),
    "agent-edit": _AGENT,
    "agent-create": _NEW_AGENT,
    "agent-code": ShortcutGroup(
        _("Use from code"), (Shortcut(("c",), _("Copy the example")),)
    ),
    "tool-create": _TOOL,
    "tool-detail": _TOOL,
    "tools_tool_add": _TOOL_FORM,
    "tools_tool_change": _TOOL_FORM,
    "prompt-detail": _EDITOR,
    "prompt-create": _EDITOR,
    "playground": _PLAYGROUND,
}


def list_shortcuts(page: str = "") -> list[ShortcutGroup]:
    """Return the shortcuts of a page and of all pages; without a page, everything."""
    if page:
        own = PAGE_SHORTCUTS.get(page)
        return [own, ALL_PAGES] if own else [ALL_PAGES]
    every = dict.fromkeys(PAGE_SHORTCUTS.values())
    return [ALL_PAGES, *every]
