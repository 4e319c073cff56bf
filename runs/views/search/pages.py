"""The pages and actions that the search offers."""

from collections.abc import Iterable
from typing import NamedTuple

from django.contrib.auth.models import User
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.ui.context_processors import (
    build_account_menu,
    build_nav_items,
    reverse_or_empty,
)
from tools.views.browse import list_new_kinds

PAGES = [
    ("approval-answered", "inbox", gettext_lazy("Decided approvals")),
    ("experiment-list", "evaluation", gettext_lazy("Experiments")),
    ("dataset-list", "evaluation", gettext_lazy("Datasets")),
    ("evaluator-list", "evaluation", gettext_lazy("Evaluators")),
    ("queue-list", "evaluation", gettext_lazy("Annotation queues")),
    ("rule-list", "evaluation", gettext_lazy("Scoring rules")),
    ("reference", "code", gettext_lazy("API reference")),
]
"""URL name, icon and label of pages that are below those of the navigation."""
ACTIONS = [
    ("agent-list", "play", gettext_lazy("New run")),
    ("agent-create", "agent", gettext_lazy("New agent")),
    ("agent-import", "download", gettext_lazy("Import an agent")),
    ("chat", "chat", gettext_lazy("New conversation")),
    ("experiment-create", "evaluation", gettext_lazy("New experiment")),
    ("dataset-create", "evaluation", gettext_lazy("New dataset")),
    ("evaluator-create", "evaluation", gettext_lazy("New evaluator")),
    ("queue-create", "evaluation", gettext_lazy("New queue")),
    ("rule-create", "evaluation", gettext_lazy("New rule")),
    ("schedule-create", "clock", gettext_lazy("New schedule")),
    ("prompt-create", "text", gettext_lazy("New prompt")),
    ("playground", "text", gettext_lazy("Playground")),
    ("provider-create", "provider", gettext_lazy("Add provider")),
    ("tool-import", "tool", gettext_lazy("Import tools")),
    ("webhook-create", "send", gettext_lazy("New webhook")),
    ("hook-create", "inbox", gettext_lazy("New incoming webhook")),
    ("shortcut-list", "text", gettext_lazy("Keyboard shortcuts")),
]
"""URL name, icon and label of what everyone may do."""
STAFF_PAGES = [
    ("tools", "tool", "tool", gettext_lazy("Tools in the administration")),
    ("tools", "mcpserver", "worker", gettext_lazy("MCP servers")),
    ("tools", "credential", "key", gettext_lazy("Credentials")),
    ("auth", "user", "user", gettext_lazy("Users")),
    ("auth", "group", "user", gettext_lazy("Groups")),
]
"""App and model, icon and label of pages of the administration."""
STAFF_ACTIONS = [
    ("tools", "mcpserver", "worker", gettext_lazy("Add MCP server")),
    ("tools", "credential", "key", gettext_lazy("New credential")),
    ("auth", "user", "user", gettext_lazy("New user")),
    ("auth", "group", "user", gettext_lazy("New group")),
]


class SearchResult(NamedTuple):
    """A place to go to."""

    label: str
    url: str
    icon: str = ""
    status: str = ""
    """Of a run; its shape stands in place of the icon."""
    detail: str = ""


def list_main_pages(user: User) -> list[SearchResult]:
    """Return the pages of the navigation and of the account."""
    audits = user.is_staff and user.has_perm("tools.view_auditentry")
    items = [
        *(item for item in build_nav_items("", 0) if _may_open(user, item.url)),
        *build_account_menu(user, audits=audits),
    ]
    return [SearchResult(item.label, item.url, item.icon) for item in items]


def list_lower_pages(user: User) -> list[SearchResult]:
    """Return the other pages that the user may open."""
    staff_pages = [
        (f"admin:{app}_{model}_changelist", icon, label)
        for app, model, icon, label in STAFF_PAGES
        if _has_any_permission(user, f"{app}.view_{model}", f"{app}.change_{model}")
    ]
    return _build_results([*PAGES, *staff_pages])


def list_actions(user: User) -> list[SearchResult]:
    staff_actions = [
        (f"admin:{app}_{model}_add", icon, label)
        for app, model, icon, label in STAFF_ACTIONS
        if _has_any_permission(user, f"{app}.add_{model}")
    ]
    return [*_build_results([*ACTIONS, *staff_actions]), *_list_new_tools(user)]


def _list_new_tools(user: User) -> list[SearchResult]:
    if not _has_any_permission(user, "tools.add_tool"):
        return []
    kinds = [
        (_("New tool: %(kind)s") % {"kind": label}, reverse("tool-create", args=[kind]))
        for kind, label in list_new_kinds()
    ]
    others = [
        (_("New tool from cURL or a URL"), reverse("tool-from-request")),
        (_("Import tools from OpenAPI"), reverse("admin:tools_tool_import")),
    ]
    return [SearchResult(label, url, "tool") for label, url in [*kinds, *others]]


def _may_open(user: User, url: str) -> bool:
    return user.is_staff or not url.startswith("/admin/")


def _has_any_permission(user: User, *permissions: str) -> bool:
    return user.is_staff and any(user.has_perm(one) for one in permissions)


def _build_results(
    places: Iterable[tuple[str, str, str | Promise]],
) -> list[SearchResult]:
    return [
        SearchResult(str(label), url, icon)
        for name, icon, label in places
        if (url := reverse_or_empty(name))
    ]
