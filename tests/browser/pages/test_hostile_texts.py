"""Texts of models, tools, servers and people run no script and load nothing."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from urllib.parse import quote, urlencode, urlsplit

import pytest
from playwright.sync_api import BrowserContext, Dialog, expect

from tests.browser.driver.chromium import listen, signed_in
from tests.browser.seed.hostile import EVIL, HTML, MARKDOWN, PAYLOADS, SHORT
from tests.browser.site import Site, running_site
from tests.fakes.model_server import model_server
from tests.tools.http_server import Answer, Got, serve

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LIST_ADDRESSES = """
import django, json
django.setup()
from tests.every_address import list_addresses
print(json.dumps({one.name: one.path for one in list_addresses()}))
"""
LEAVE_OUT = {
    *("sign-in", "sign-out", "admin:logout"),
    *("live-me", "run-live", "turn-live"),  # streams without an end
    "run-media",  # an image
}
DOWNLOADS = {
    *("admin:tools_auditentry_csv", "agent-export", "approval-arguments"),
    *(
        "chat-export-json",
        "chat-export-markdown",
        "dataset-export",
        "experiment-export",
    ),
    "run-answer",
    *("run-export", "run-export-html", "run-export-json"),
    *("run-raw", "tool-export", "usage-export"),
}
WITH_STEPS = ("run-detail", "run-shared")
QUERY_NAMES = """
    q tag status agent model tool next step page version kind tab a b period sort order
    view prompt o
"""
ANY_QUERY = urlencode(dict.fromkeys(QUERY_NAMES.split(), SHORT))
"""Names of queries that pages read, with what no page expects."""
CONNECT = """
import django
django.setup()
from runs.models import Agent, AgentTool, Provider, ProviderOutage
from tools.models import McpServer, McpSignIn
Agent.objects.update(prompt=None)
AgentTool.objects.all().delete()
Provider.objects.update(base_url={model!r}, sealed_headers="", stream=True)
ProviderOutage.objects.all().delete()
McpServer.objects.update(url={mcp!r})
McpSignIn.objects.all().delete()
from runs.services.agents.publish import publish_draft
for agent in Agent.objects.filter(versions__isnull=False).distinct():
    publish_draft(agent, by=None, reason="without tools, for the test")
"""
"""Connects the seeded rows to servers of the test."""
REFUSED = "status of 4"
"""In what Chromium reports of pages that say that something is not there."""


class Watch:
    """A browser of an administrator, and what its pages did."""

    def __init__(self, context: BrowserContext, site: Site) -> None:
        self.context, self.site = context, site
        self.asked: list[tuple[str, str]] = []
        self.dialogs: list[str] = []
        context.on("request", lambda one: self.asked.append((one.method, one.url)))
        self.page = signed_in(context, site.url, "admin", "admin")
        self.page.on("dialog", self.dismiss)
        self.heard = listen(self.page)

    def dismiss(self, dialog: Dialog) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    @property
    def posts(self) -> int:
        return sum(method == "POST" for method, _url in self.asked)

    def visit(self, path: str, *, below: int = 500) -> None:
        """Open a page, and give its scripts a moment."""
        answer = self.page.goto(f"{self.site.url}{path}")
        assert answer is not None
        assert answer.status < below, path
        self.look(path)

    def look(self, path: str) -> None:
        self.page.wait_for_timeout(100)
        assert self.page.evaluate("typeof pwned") == "undefined", path
        foreign = self.page.locator("main script:not([src]), iframe, object, base")
        assert foreign.count() == 0, path

    def check(self) -> None:
        assert self.dialogs == []
        assert [one for one in self.heard if REFUSED not in one] == []
        hosts = {urlsplit(url).hostname for _method, url in self.asked}
        assert hosts == {"127.0.0.1"}


@contextmanager
def watched(browser, *, worker: bool = False) -> Iterator[Watch]:
    with running_site(seed="tests.browser.seed.hostile", worker=worker) as site:
        context = browser.new_context()
        context.set_default_timeout(60_000)
        watch = Watch(context, site)
        yield watch
        context.close()
        watch.check()


def pages_of(site: Site) -> dict[str, str]:
    """Return the path of each page by its name; files are left out."""
    paths = json.loads(site.run("-c", LIST_ADDRESSES))
    return {
        name: path
        for name, path in paths.items()
        if name not in LEAVE_OUT | DOWNLOADS and not name.startswith("api")
    }


def test_no_page_runs_or_loads_what_a_text_says(browser):
    with watched(browser) as watch:
        posts = watch.posts
        for name, path in pages_of(watch.site).items():
            watch.visit(path)
            for number in range(1, 5) if name in WITH_STEPS else ():
                watch.visit(f"{path}?step={number}", below=400)
        assert watch.posts == posts


def test_files_are_saved_and_do_nothing_when_opened(browser):
    with watched(browser) as watch:
        paths = json.loads(watch.site.run("-c", LIST_ADDRESSES))
        for name in DOWNLOADS:
            file = watch.context.request.get(f"{watch.site.url}{paths[name]}")
            assert file.status == 200, name
            assert file.headers["content-disposition"].startswith("attachment"), name
            assert file.headers["x-content-type-options"] == "nosniff", name
        page = f"{watch.site.url}{paths['run-export-html']}"
        text = watch.context.request.get(page).text()
        assert EVIL in text  # as text
        watch.page = watch.context.new_page()  # without the policy of the site
        received = listen(watch.page)
        watch.page.set_content(text)
        watch.look("run-export-html")
        assert received == []


def test_no_page_runs_what_an_address_says(browser):
    with watched(browser) as watch:
        for path in pages_of(watch.site).values():
            address = f"{path}{'&' if '?' in path else '?'}{ANY_QUERY}"
            answer = watch.context.request.get(f"{watch.site.url}{address}")
            if "onerror" in answer.text():
                watch.visit(address)
        for payload in HTML[:12]:
            watch.visit(f"/runs/?q={quote(payload)}", below=400)


def test_messages_and_refused_files_are_text(browser):
    with watched(browser) as watch:
        watch.visit("/agents/1/")
        token = watch.page.locator("[name=csrfmiddlewaretoken]").first.input_value()
        for path in ("/agents/1/rename/", "/prompts/1/rename/", "/providers/1/rename/"):
            form = {"csrfmiddlewaretoken": token, "name": SHORT}
            answer = watch.context.request.post(f"{watch.site.url}{path}", form=form)
            assert SHORT not in answer.text()
            assert "onerror=&quot;" in answer.text()
        for name in ("agents/import", "tool-files/import"):
            watch.visit(f"/{name}/", below=400)
            entry = {"slug": SHORT, **{payload: payload for payload in MARKDOWN}}
            file = json.dumps({"agentfile": 1, "tools": [entry], SHORT: PAYLOADS})
            watch.page.fill("[name=text]", file)
            watch.page.locator("main form button.primary").first.click()
            expect(watch.page.locator("main")).to_contain_text("Unknown field.")
            watch.look(name)


def mcp_server(got: Got) -> Answer:
    """Answer as an MCP server all of whose texts are hostile."""
    said = got.json() if got.body else {}
    if said.get("method") == "initialize":
        result = {
            "protocolVersion": said["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": SHORT, "version": SHORT},
            "instructions": PAYLOADS,
        }
    elif said.get("method") == "tools/list":
        shape = {SHORT: {"type": "string", "description": PAYLOADS, "title": SHORT}}
        one = {
            "description": PAYLOADS,
            "inputSchema": {"type": "object", "properties": shape},
            "annotations": {"title": SHORT},
        }
        result = {"tools": [{"name": name, **one} for name in ("add", "b<i>", SHORT)]}
    else:
        return Answer(b"", status=202)
    return Answer({"jsonrpc": "2.0", "id": said["id"], "result": result})


def test_texts_of_servers_are_text_while_they_arrive(browser, monkeypatch):
    monkeypatch.setenv("AGENTSITE_PRIVATE_HOSTS", "provider=127.0.0.1;mcp=127.0.0.1")
    answers = [
        {"content": PAYLOADS, "reasoning": PAYLOADS, "pause": 0.002},
        {"content": "\n\n".join(reversed(MARKDOWN)), "pause": 0.002},
    ]
    refusal = Answer({"error": {"message": PAYLOADS}}, status=400)
    with (
        model_server(script=answers) as model,
        serve(mcp_server) as mcp,
        serve(lambda _got: refusal) as refusing,
        watched(browser, worker=True) as watch,
    ):
        site = watch.site
        site.run("-c", CONNECT.format(model=model.base_url, mcp=f"{mcp.url}/mcp"))
        for _answer in range(2):
            watch.visit("/chat/hostile/", below=400)
            watch.page.fill("[name=input]", PAYLOADS)
            watch.page.keyboard.press("Enter")
            watch.page.wait_for_url("**/chat/hostile/*/")
            done = watch.page.locator("[data-status=succeeded]").first
            deadline = monotonic() + 60
            while not done.is_visible():
                assert monotonic() < deadline, "no answer within a minute"
                watch.look("chat")
        watch.visit("/admin/tools/mcpserver/1/tools/", below=400)
        watch.page.locator("main form button.primary, main form .btn").first.click()
        expect(watch.page.locator("main")).to_contain_text("b<i>")
        watch.look("mcp tools")
        site.run("-c", CONNECT.format(model=f"{refusing.url}/v1", mcp=mcp.url))
        watch.visit("/providers/1/", below=400)
        watch.page.get_by_role("button", name="Test connection").click()
        expect(watch.page.locator("#provider-test")).to_contain_text("script")
        watch.look("provider test")
        watch.visit("/chat/hostile/", below=400)
        watch.page.fill("[name=input]", SHORT)
        watch.page.keyboard.press("Enter")
        watch.page.locator("[data-status=failed]").first.wait_for()
        watch.look("failed answer")
