"""What stands around every page: places to go, signs of life, theme."""

from typing import NamedTuple, cast

from django.contrib.auth.models import User
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.functional import SimpleLazyObject

from runs.models import Decision, Preferences
from runs.services.worker_health import worker_health

THEMES = [("system", "As the system"), ("light", "Light"), ("dark", "Dark")]

PLACES = [
    ("Home", "home", ["home"]),
    ("Runs", "runs", ["run-list"]),
    ("Approvals", "inbox", ["approval-list"]),
    ("Agents", "agent", ["agent-list"]),
    ("Schedules", "clock", ["schedule-list"]),
    (
        "Tools",
        "tool",
        [
            *("tool-list", "tool-import", "admin:tools_tool_changelist"),
            *("admin:tools_mcpserver_changelist", "admin:tools_credential_changelist"),
        ],
    ),
    ("Prompts", "text", ["prompt-list", "playground"]),
    ("Providers", "provider", ["provider-list"]),
    ("Chat", "chat", ["chat"]),
]
"""Word, icon, URL names of the pages there; the first is where the word leads."""

ON_A_PHONE = ["Home", "Runs", "Approvals", "Chat"]
ON_A_TABLET = ["Home", "Runs", "Approvals", "Agents", "Tools", "Chat"]
"""The others are under More where the bar is narrow."""


class Place(NamedTuple):
    """A link of the frame."""

    word: str
    icon: str
    url: str
    is_here: bool = False
    waiting: int = 0
    """How many things there need a person."""
    counts: bool = False
    """Whether a number stands beside the word."""
    folds: bool = False
    """Whether it goes under More where the bar is narrow."""


class Health(NamedTuple):
    """The workers in words."""

    tone: str
    words: str
    short: str


class Frame:
    """Everything `base.html` shows, asked for when a page really shows it."""

    themes = THEMES

    def __init__(self, request: HttpRequest, user: User) -> None:
        self.person = user.get_full_name() or user.get_username()
        self.initials = initials(self.person)
        self.chosen_theme = theme_of(user)
        self.theme = "" if self.chosen_theme == "system" else self.chosen_theme
        self.health = health_words()
        self.search_url = address("run-list") or "/"
        self.workers_url = address("worker-list") or "/"
        waiting = Decision.objects.answerable_by(user).open().count()
        self.places = [
            place
            for place in places(request.path, waiting)
            if user.is_staff or not place.url.startswith("/admin/")
        ]
        self.tabs = [p for p in self.places if p.word in ON_A_PHONE]
        audits = user.is_staff and user.has_perm("tools.view_auditentry")
        self.account = account(is_staff=user.is_staff, audits=audits)
        self.rest = [
            *(p for p in self.places if p.word not in ON_A_PHONE),
            Place(
                *("Workers", "worker", self.workers_url),
                is_here=request.path == self.workers_url,
            ),
        ]


def frame(request: HttpRequest) -> dict[str, object]:
    """Give templates `frame`; nothing for strangers and for broken requests."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {}
    return {"frame": SimpleLazyObject(lambda: Frame(request, cast(User, user)))}


def places(path: str, waiting: int) -> list[Place]:
    """Return the places that have a page."""
    found = []
    for word, icon, names in PLACES:
        urls = [url for name in names if (url := address(name))]
        if urls:
            url = urls[0]
            under = tuple(one for one in urls if one != "/")
            here = path == url or path.startswith(under)
            counts = word == "Approvals"
            number = waiting if counts else 0
            folds = word not in ON_A_TABLET
            found.append(Place(word, icon, url, here, number, counts, folds))
    return found


def account(*, is_staff: bool, audits: bool) -> list[Place]:
    """Return the links of the account menu."""
    links = [
        Place("Set a password", "key", address("set-password")),
        Place("API tokens", "link", address("token-list")),
        Place("Webhooks", "send", address("webhook-list")),
        Place("Workers", "worker", address("worker-list")),
    ]
    if is_staff:
        links.append(Place("Administration", "gear", address("admin:index")))
    if audits:
        log = address("admin:tools_auditentry_changelist")
        links.append(Place("Audit log", "list", log))
    return [place for place in links if place.url]


def address(name: str) -> str:
    """Return the URL of `name`; empty where no such page exists."""
    try:
        return reverse(name)
    except NoReverseMatch:
        return ""


def theme_of(user: User) -> str:
    """Return system, light or dark, as the person chose."""
    row = Preferences.objects.filter(user=user.pk).values_list("theme").first()
    return row[0] if row else "system"


def initials(person: str) -> str:
    """Return one or two capitals for the account button."""
    words = person.split()
    letters = [w[0] for w in words[:2]] if len(words) > 1 else [person[:2]]
    return "".join(letters).upper()


def health_words() -> Health:
    """Say how many workers live and what they do."""
    now = worker_health()
    if not now.alive:
        wait = f", {now.queued} waiting" if now.queued else ""
        return Health("bad", f"No worker is running{wait}", "No worker")
    workers = "1 worker" if now.workers == 1 else f"{now.workers} workers"
    doing = f"{now.running} running" if now.running else "idle"
    queue = f"{now.queued} queued" if now.queued else "queue empty"
    return Health("good", f"{workers}, {doing}, {queue}", workers)
