"""The frame of every page: navigation, worker health, theme and language."""

from typing import NamedTuple, cast

from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.functional import SimpleLazyObject, cached_property
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from runs.language import SESSION_KEY
from runs.models import Agent, Decision, Preferences, SiteRestore
from runs.services.health.workers import WorkerHealth, get_worker_health
from runs.ui.frame.shortcuts import JUMPS
from tools.accounts.person_name import get_person_name
from tools.models import Tool

THEMES = [
    ("system", gettext_lazy("System theme")),
    ("light", gettext_lazy("Light")),
    ("dark", gettext_lazy("Dark")),
]

NAV_PAGES = [
    (gettext_lazy("Home"), "home", ["home"]),
    (gettext_lazy("Runs"), "runs", ["run-list"]),
    (gettext_lazy("Approvals"), "inbox", ["approval-list"]),
    (gettext_lazy("Agents"), "agent", ["agent-list"]),
    (
        gettext_lazy("Evaluation"),
        "evaluation",
        ["experiment-list", "dataset-list", "evaluator-list"]
        + ["queue-list", "rule-list"],
    ),
    (gettext_lazy("Schedules"), "clock", ["schedule-list"]),
    (
        gettext_lazy("Tools"),
        "tool",
        [
            *("tool-list", "tool-import", "admin:tools_tool_changelist"),
            *("admin:tools_mcpserver_changelist", "admin:tools_credential_changelist"),
        ],
    ),
    (gettext_lazy("Prompts"), "text", ["prompt-list", "playground"]),
    (gettext_lazy("Providers"), "provider", ["provider-list"]),
    (gettext_lazy("Usage"), "chart", ["usage"]),
    (gettext_lazy("Chat"), "chat", ["chat"]),
]
"""Label, icon and URL names; the label links to the first, which identifies it."""

PHONE_PAGES = ["home", "run-list", "approval-list", "chat"]
TABLET_PAGES = [*PHONE_PAGES, "agent-list", "tool-list"]
"""The others are in the More menu when the bar is narrow."""


class NavItem(NamedTuple):
    name: str
    """Of its URL."""
    label: str
    icon: str
    url: str
    is_here: bool = False
    pending_count: int = 0
    """Open approvals of this user."""
    shows_count: bool = False
    """Whether the label shows `pending_count`."""
    is_in_more_menu: bool = False
    """Whether it moves to the More menu when the bar is narrow."""

    @property
    def jump_key(self) -> str:
        """The letter after "g" that opens it."""
        return JUMPS.get(self.name, "")

    @property
    def folds_last(self) -> bool:
        """Whether it moves to the More menu after the others."""
        return self.name == "experiment-list"

    @property
    def is_personal(self) -> bool:
        """Whether it is of use to people who only chat."""
        return self.name == "set-password"


class HealthSummary(NamedTuple):
    """The state of the workers, long and short."""

    tone: str
    words: str
    short: str


class PageFrame:
    """What `base.html` shows; created only when a template reads it."""

    themes = THEMES
    languages = settings.LANGUAGES

    def __init__(self, request: HttpRequest, user: User) -> None:
        self.user = user
        self.person = get_person_name(user)
        self.initials = get_initials(self.person)
        self.selected_theme = get_theme(user)
        self.theme = "" if self.selected_theme == "system" else self.selected_theme
        self.selected_language = request.session.get(SESSION_KEY, "")
        self.health = summarize_worker_health(get_worker_health())
        self.restore = SiteRestore.objects.unconfirmed().first()
        self.can_confirm_restore = user.is_superuser
        match = request.resolver_match
        self.page_name = match.url_name if match and match.url_name else ""
        self.workers_url = reverse_or_empty("worker-list") or "/"
        waiting = count_pending_decisions(user)
        self.nav_items = [
            place
            for place in build_nav_items(request.path, waiting)
            if user.is_staff or not place.url.startswith("/admin/")
        ]
        self.tabs = [p for p in self.nav_items if p.name in PHONE_PAGES]
        audits = user.is_staff and user.has_perm("tools.view_auditentry")
        self.account = build_account_menu(user, audits=audits)
        self.more_items = [
            *(p for p in self.nav_items if p.name not in PHONE_PAGES),
            NavItem(
                "worker-list",
                _("Workers"),
                "worker",
                self.workers_url,
                is_here=request.path == self.workers_url,
            ),
            NavItem("search", _("Search"), "search", reverse("search")),
        ]

    @cached_property
    def only_chats(self) -> bool:
        return only_chats(self.user)


def count_pending_decisions(user: User) -> int:
    """Count what the user may decide; the query of that takes longer to build."""
    opened = Decision.objects.open()
    return opened.answerable_by(user).count() if opened.exists() else 0


def only_chats(user: User) -> bool:
    """Whether the user just chats: owns no agent, approves and manages nothing."""
    if user.is_staff or user.is_superuser:
        return False
    own = Agent.objects.filter(owner=user, is_playground=False)
    approved = Tool.objects.filter(approvers__in=user.groups.all())
    return not own.exists() and not approved.exists()


def page_frame(request: HttpRequest) -> dict[str, object]:
    """Add `frame` for signed-in users."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {}
    return {"frame": SimpleLazyObject(lambda: PageFrame(request, cast(User, user)))}


def shell_commands(_request: HttpRequest) -> dict[str, str]:
    """Add how this installation is started and managed in a terminal."""
    return {
        "start_command": settings.START_COMMAND,
        "manage_command": settings.MANAGE_COMMAND,
    }


def build_nav_items(path: str, waiting: int) -> list[NavItem]:
    found = []
    for word, icon, names in NAV_PAGES:
        urls = [url for name in names if (url := reverse_or_empty(name))]
        if urls:
            url = urls[0]
            under = tuple(one for one in urls if one != "/")
            here = path == url or path.startswith(under)
            counts = names[0] == "approval-list"
            number = waiting if counts else 0
            folds = names[0] not in TABLET_PAGES
            label = str(word)
            found.append(
                NavItem(names[0], label, icon, url, here, number, counts, folds)
            )
    return found


def build_account_menu(user: User, *, audits: bool) -> list[NavItem]:
    links = [
        ("set-password", _("Set a password"), "key"),
        ("token-list", _("API tokens"), "link"),
        ("notification-settings", _("E-mail notifications"), "inbox"),
        ("webhook-list", _("Webhooks"), "send"),
        ("hook-list", _("Incoming webhooks"), "download"),
        ("worker-list", _("Workers"), "worker"),
    ]
    if user.is_staff:
        links.append(("admin:index", _("Administration"), "gear"))
    if audits:
        links.append(("admin:tools_auditentry_changelist", _("Audit log"), "list"))
    if user.is_superuser:
        links.append(("retention", _("Retention"), "history"))
    return [
        NavItem(name, label, icon, url)
        for name, label, icon in links
        if (url := reverse_or_empty(name))
    ]


def reverse_or_empty(name: str) -> str:
    """Return the URL of `name`; empty if there is no such page."""
    try:
        return reverse(name)
    except NoReverseMatch:
        return ""


def get_theme(user: User) -> str:
    """Return the user's setting: system, light or dark."""
    row = Preferences.objects.filter(user=user.pk).values_list("theme").first()
    return row[0] if row else "system"


def get_initials(person: str) -> str:
    """Return one or two capital letters for the account button."""
    words = person.split()
    letters = [w[0] for w in words[:2]] if len(words) > 1 else [person[:2]]
    return "".join(letters).upper()


def summarize_worker_health(now: WorkerHealth) -> HealthSummary:
    """Say how many workers are alive, and how many runs they have."""
    if not now.alive:
        words = _("No worker is running")
        if now.queued:
            words = ngettext(
                "No worker is running, %(count)d run waiting",
                "No worker is running, %(count)d runs waiting",
                now.queued,
            ) % {"count": now.queued}
        return HealthSummary("bad", words, _("No worker"))
    workers = ngettext("%(count)d worker", "%(count)d workers", now.workers) % {
        "count": now.workers
    }
    running = _("%(count)d running") % {"count": now.running}
    queued = _("%(count)d queued") % {"count": now.queued}
    words = _("%(workers)s, %(running)s, %(queued)s") % {
        "workers": workers,
        "running": running if now.running else _("idle"),
        "queued": queued if now.queued else _("queue empty"),
    }
    return HealthSummary("good", words, workers)
