"""Every text of the pages is marked for translation.

A pseudo-language wraps each translated text in ⟦ and ⟧. The people of the site write
Greek, so that Latin letters outside the brackets are texts that nobody can translate.
"""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any
from urllib.parse import parse_qsl, urljoin, urlsplit

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client
from django.urls import Resolver404, resolve
from django.utils.translation import trans_real

from runs.models import ApiToken, Conversation, Run, RunTag, SavedFilter
from runs.services.search.index_runs import index_runs
from runs.services.spec.freeze import freeze_agent
from runs.store.specs import get_or_create_spec
from tests.make import (
    make_agent,
    make_call,
    make_decision,
    make_delivery,
    make_prompt,
    make_provider,
    make_run,
    make_schedule,
    make_step,
    make_tool,
    make_version,
    make_webhook,
    make_worker,
)
from tools.models import Credential
from tools.text.translatable import translatable

pytestmark = pytest.mark.django_db

VISITS = 1
"""How often a view is opened with the same name of a query parameter."""
FAILURE = translatable("The provider %(provider)s was deleted.", provider="πάροχος")
"""A stored sentence: in English, and translated for whoever reads it."""
STATUSES = [status.value for status in Run.Status]
UNTRANSLATED = re.compile(
    r"""
    \b(Agentsite | agentfile | UTC | GET | HEAD | POST | PUT | PATCH | DELETE)\b
    | \b(CSV | JSON | English | Google\ Gemini | Ollama | weather | calculator)\b
    | \b(GitHub | Slack | Stripe)\b
    | \b(Python | JavaScript | MCP | Shell | input | refused)\b | \bcurl\b(\s.*)?
    | [\w.-]*[_/:=][\w./:=-]*
    """,
    re.VERBOSE | re.DOTALL,
)
"""Names of products and languages, words of protocols, samples, and identifiers."""


class Texts(HTMLParser):
    """The texts of a page that no bracket encloses, and its links."""

    SHOWN = ("title", "aria-label", "placeholder", "alt")
    CODE = ("script", "style", "code", "pre", "textarea", "ins", "del")
    DATA_SELECTS = ("time_zone", "function")
    """Names of zones, and functions of the operator with their docstrings."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.links: list[str] = []
        self._skipped: list[str] = []
        """Open elements of code or data."""
        self._brackets = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = {name: value or "" for name, value in attrs}
        is_key = "kbd" in known.get("class", "").split()
        is_english = known.get("lang") == "en"  # the reference of the API
        is_data = known.get("name") in self.DATA_SELECTS or is_key or is_english
        if tag in self.CODE or is_data:
            self._skipped.append(tag)
        if tag == "a" and "href" in known:
            self.links.append(known["href"])
        self.found += [outside(known.get(name, ""))[0] for name in self.SHOWN]

    def handle_endtag(self, tag: str) -> None:
        if self._skipped and self._skipped[-1] == tag:
            self._skipped.pop()

    def handle_data(self, data: str) -> None:
        text, self._brackets = outside(data, self._brackets)
        if not self._skipped:
            self.found.append(text)


def outside(text: str, depth: int = 0) -> tuple[str, int]:
    """Return what is outside all brackets, and how many are open at the end."""
    kept = []
    for letter in text:
        if letter == "⟦":
            depth += 1
        elif letter == "⟧":
            depth -= 1
        elif depth == 0:
            kept.append(letter)
    return "".join(kept), depth


@pytest.fixture
def marked_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrap every translated text in brackets."""
    for name in ("gettext", "pgettext", "ngettext", "npgettext"):
        real = getattr(trans_real, name)

        def marked(*words: Any, real: Any = real) -> str:
            return f"⟦{real(*words)}⟧"

        # it takes the function of `trans_real` at its first use, so it is the first
        monkeypatch.setattr(f"django.utils.translation._trans.{name}", marked)
        monkeypatch.setattr(trans_real, name, marked)


@pytest.fixture
def greek_site() -> User:
    """Make one of everything; its people write Greek only."""
    ada = User.objects.create_superuser(
        "άντα", first_name="Άντα", last_name="Λόβλεϊς", password="secret"
    )
    provider = make_provider(ada, name="πάροχος", slug="p", default_model="μ")
    make_prompt(ada, name="προτροπή")
    make_prompt(ada, name="σκέψη", kind="react", template="{input} {agent_scratchpad}")
    credential = Credential.objects.create(owner=ada, name="κλειδί", hosts=["α.ελ"])
    reads = make_tool(ada, name="a1", description="Διαβάζει")
    writes = make_tool(
        ada,
        name="a2",
        description="Γράφει",
        kind="http",
        effect="side_effect",
        approval="always",
        credential=credential,
        config={"method": "POST", "url": "https://α.ελ/"},
    )
    make_tool(
        ada,
        name="a3",
        description="Υπολογίζει",
        kind="python",
        config={"code": "1 + 1"},
    )
    agent = make_agent(
        ada,
        name="πράκτορας",
        slug="a",
        provider=provider,
        model="μ",
        tools=(reads, writes),
    )
    spec = get_or_create_spec(freeze_agent(agent))
    for _ in range(2):
        version = make_version(agent, by=ada, spec=spec)
    chat = Conversation.objects.create(owner=ada, agent=agent, title="συζήτηση")
    worker = make_worker(name="ε:1", host="ε")
    for status in STATUSES:
        run = make_run(
            ada,
            agent=agent,
            version=version,
            spec=spec,
            status=status,
            title="ερώτηση",
            inputs={"input": "ερώτηση"},
            conversation=chat if status == "succeeded" else None,
            worker=worker if status == "running" else None,
            **({"output": "απάντηση"} if status in ("succeeded",) else {}),
            **({"error_message": FAILURE} if status == "failed" else {}),
        )
        fill(run, reads.name, writes.name)
    RunTag.objects.create(run=run, name="ετικέτα")
    SavedFilter.objects.create(owner=ada, name="φίλτρο", query="status=failed")
    ApiToken.objects.create(user=ada, name="κλειδί", digest="α" * 64)
    make_schedule(ada, agent=agent, name="πρόγραμμα", inputs={"input": "ερώτηση"})
    webhook = make_webhook(ada, name="ειδοποίηση", url="https://α.ελ/")
    make_delivery(webhook, run)
    make_delivery(webhook, status="failed")
    while index_runs():
        pass
    return ada


def fill(run: Run, reads: str, writes: str) -> None:
    """Give a run a round with two calls, one of which may wait for an approval."""
    call = make_call(run, reply={"text": "σκέφτομαι"}, model="μ")
    make_step(run, call=call, tool=reads, tool_input={"α": "β"}, observation="γ")
    if run.status == "awaiting_approval":
        step = make_step(
            run,
            call=call,
            tool=writes,
            tool_input={"α": "β"},
            status="awaiting_approval",
        )
        make_decision(step)
    elif run.status == "failed":
        make_step(run, call=call, tool=writes, status="failed", observation="σφάλμα")


def crawl(client: Client, start: str) -> Iterator[tuple[str, Texts]]:
    """Open pages that links lead to, each view a few times."""
    queue, known, visits = [start], {start}, {}
    while queue:
        address = queue.pop(0)
        answer: HttpResponse = client.get(address, follow=True)
        if answer.streaming or "html" not in answer.headers["Content-Type"]:
            continue
        page = Texts()
        page.feed(answer.content.decode())
        yield address, page
        for link in page.links:
            parts = urlsplit(urljoin(address, link))
            where = f"{parts.path}?{parts.query}" if parts.query else parts.path
            if parts.netloc or where in known or not (view := view_of(parts.path)):
                continue
            known.add(where)
            names = tuple(name for name, _ in parse_qsl(parts.query))
            if len(names) > 1:
                continue  # filters in all combinations show no other texts
            shape = view, names
            visits[shape] = visits.get(shape, 0) + 1
            if visits[shape] <= VISITS:
                queue.append(where)


def view_of(path: str) -> str:
    try:
        return resolve(path).view_name
    except Resolver404:
        return ""


def test_no_text_of_any_page_is_unmarked(marked_texts, greek_site):
    client = Client()
    client.force_login(greek_site)
    pages = dict(crawl(client, "/"))

    found = {
        " ".join(text.split()): address
        for address, page in pages.items()
        for text in page.found
        if re.search(r"[A-Za-z]{2}", UNTRANSLATED.sub("", text))
    }
    assert found == {}
    assert len(pages) > 100
