"""Screenshots of every page: `python -m tests.browser.shots [name …]`, into ./shots.

The name `tutorial` takes those of docs/tutorial-evaluation.md instead, into ./docs.
"""

import itertools
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Browser, Page
from playwright.sync_api import Error as PlaywrightError

from tests.browser.driver.chromium import chromium, listen, overflow, seen_by
from tests.browser.driver.moves import MORE, MOVES, Move, press
from tests.browser.driver.tutorial import enter, walk_to_the_end, walk_to_the_gate
from tests.browser.site import Site, running_site
from tests.faults.site import start

ROOT = Path(__file__).parent.parent.parent
FOLDER = ROOT / "shots"
TUTORIAL = "tutorial"
TUTORIAL_WIDTH = 1180
TOP_BAR = 48
PAGES = {
    "home": "/",
    "runs": "/runs/",
    "chat": "/chat/",
    "chat-agent": "/chat/travel-planner/",
    "chat-new": "/chat/glossary/",
    "chat-conversation": "/chat/travel-planner/900/",
    "chat-ends": "/chat/travel-planner/901/",
    "runs-filtered": "/runs/?sort=cost&tests=without&cost=0.01",
    "runs-none": "/runs/?q=nothing-fits-this",
    "approvals": "/approvals/",
    "approval": "/approvals/1/",
    "outcome": "/approvals/2/",
    "approvals-several": "/approvals/several/?pick=1",
    "approvals-answered": "/approvals/answered/",
    "run": "/runs/9034/",
    "run-running": "/runs/9030/",
    "run-done": "/runs/9002/",
    "run-step": "/runs/9002/?step=5&tab=prompt",
    "run-timeline": "/runs/9002/?as=time",
    "run-failed": "/runs/9003/",
    "run-approval": "/runs/9004/",
    "run-big": "/runs/9005/?step=2000",
    "run-canceled": "/runs/9006/?step=5",
    "run-lost": "/runs/9007/",
    "run-queued": "/runs/9041/",
    "run-waiting": "/runs/9042/",
    "run-decision": "/runs/9043/",
    "run-stopped": "/runs/4790/",
    "run-crashed": "/runs/8001/",
    "run-internal": "/runs/8002/",
    "run-away": "/runs/8003/",
    "run-long": "/runs/8007/",
    "run-long-step": "/runs/8007/?step=2",
    "run-errors": "/runs/9005/?show=errors&step=1601",
    "run-search": "/runs/9002/?q=颐和园&step=7&tab=tool",
    "fork": "/runs/4790/fork/4/",
    "fork-reply": "/runs/4790/fork/5/",
    "fork-run": "/runs/4806/",
    "compare": "/runs/compare/?a=4790&b=4806",
    "compare-with": "/runs/compare/?a=4806",
    "resume": "/runs/4790/resume/",
    "again": "/runs/4806/again/",
    "share": "/runs/4806/share/",
    "shared": "/shared/a-link-to-look-at/",
    "retention": "/retention/",
    "retention-prune": "/retention/prune/",
    "user-erase": "/users/2/erase/",
    "tools": "/tools/",
    "tool": "/tools/city_forecast/",
    "tool-python": "/tools/double/",
    "tool-import": "/tool-files/import/",
    "agents": "/agents/",
    "agent": "/agents/1/",
    "agent-edit": "/agents/1/edit/",
    "agent-prompt": "/agents/1/edit/?try=prompt",
    "agent-side": "/agents/1/edit/?try=side",
    "agent-code": "/agents/1/code/",
    "agent-code-sent": "/agents/1/code/?run=9002",
    "agent-versions": "/agents/1/versions/",
    "agent-tool": "/agents/1/tools/1/",
    "agent-new": "/agents/new/",
    "agent-import": "/agents/import/",
    "agent-publish": "/agents/2/publish/",
    "agent-gate": "/agents/1/gate/",
    "datasets": "/datasets/",
    "dataset": "/datasets/1/",
    "dataset-example": "/datasets/1/?example=1",
    "evaluators": "/evaluators/",
    "evaluator": "/evaluators/1/",
    "experiments": "/experiments/",
    "experiment": "/experiments/1/",
    "experiment-live": "/experiments/2/",
    "experiment-held-back": "/experiments/1/held-back/",
    "experiment-new": "/experiments/new/",
    "queues": "/queues/",
    "queue": "/queues/1/",
    "annotate": "/queues/1/runs/9/",
    "rules": "/rules/",
    "rule": "/rules/1/",
    "rule-runs": "/rules/runs/?show=failed",
    "prompts": "/prompts/",
    "prompt": "/prompts/1/",
    "prompt-new": "/prompts/new/",
    "playground": "/playground/",
    "providers": "/providers/",
    "provider": "/providers/2/",
    "provider-model": "/providers/2/models/1/",
    "provider-model-new": "/providers/2/models/new/",
    "provider-new": "/providers/new/",
    "providers-found": "/providers/found/",
    "webhooks": "/webhooks/",
    "webhook": "/webhooks/901/",
    "webhook-failing": "/webhooks/902/",
    "webhook-edit": "/webhooks/901/edit/",
    "webhook-new": "/webhooks/new/",
    "webhook-delete": "/webhooks/901/delete/",
    "hooks": "/hooks/",
    "hook-new": "/hooks/new/",
    "schedules": "/schedules/",
    "schedule": "/schedules/901/",
    "schedule-refused": "/schedules/903/",
    "schedule-new": "/schedules/new/?agent=1",
    "schedule-agent": "/schedules/new/",
    "schedule-edit": "/schedules/905/edit/",
    "schedule-delete": "/schedules/901/delete/",
    "usage": "/usage/",
    "usage-model": "/usage/?by=model&range=7d",
    "workers": "/workers/",
    "search": "/search/?q=weather",
    "shortcuts": "/shortcuts/",
    "notifications": "/account/notifications/",
    "tokens": "/account/tokens/",
    "password": "/account/password/",
    "missing": "/no/such/page/",
}
ADMIN = {
    "admin": "/admin/",
    "admin-tools": "/admin/tools/tool/",
    "admin-tool-function": "/admin/tools/tool/add/?kind=function",
    "admin-tool-new-http": "/admin/tools/tool/add/?kind=http",
    "admin-tool-new-python": "/admin/tools/tool/add/?kind=python",
    "admin-tool-new-sql": "/admin/tools/tool/add/?kind=sql",
    "admin-credential-new": "/admin/tools/credential/add/",
    "admin-tool-http": "/admin/tools/tool/901/change/",
    "admin-tool-python": "/admin/tools/tool/902/change/",
    "admin-tool-sql": "/admin/tools/tool/903/change/",
    "admin-tool-mcp": "/admin/tools/tool/904/change/",
    "admin-tool-openapi": "/admin/tools/tool/import/",
    "admin-credentials": "/admin/tools/credential/",
    "admin-credential": "/admin/tools/credential/901/change/",
    "admin-servers": "/admin/tools/mcpserver/",
    "admin-server": "/admin/tools/mcpserver/901/change/",
    "admin-server-new": "/admin/tools/mcpserver/add/",
    "admin-server-tools": "/admin/tools/mcpserver/901/tools/",
    "admin-server-history": "/admin/tools/mcpserver/901/history/",
    "admin-server-change": "/admin/tools/mcpserver/changes/904/",
    "admin-audit": "/admin/tools/auditentry/",
    "admin-audit-entry": "/admin/tools/auditentry/1/change/",
    "admin-users": "/admin/auth/user/",
    "admin-user": "/admin/auth/user/1/change/",
    "admin-user-new": "/admin/auth/user/add/",
    "admin-groups": "/admin/auth/group/",
    "admin-group": "/admin/auth/group/901/change/",
}
NEWCOMERS = {
    "new-home": "/",
    "new-runs": "/runs/",
    "new-approvals": "/approvals/",
    "new-answered": "/approvals/answered/",
    "new-agents": "/agents/",
    "new-tools": "/tools/",
    "new-chat": "/chat/",
    "new-prompts": "/prompts/",
    "new-providers": "/providers/",
    "new-playground": "/playground/",
    "new-tokens": "/account/tokens/",
    "new-webhooks": "/webhooks/",
    "new-schedules": "/schedules/",
    "new-workers": "/workers/",
    "new-forbidden": "/admin/tools/tool/",
}
"""What somebody sees who has nothing yet."""
STRANGERS = {
    "sign-in": "/sign-in/",
    "login-link": "/login/a-login-link/",
    "login-link-used": "/login/used-up/",
    "shared-over": "/shared/an-old-link/",
}
SIZES = {"1440": (1440, 1000), "390": (390, 844)}
TALLEST = 3_000
THEMES = ["light", "dark"]
EVERY = [*{**PAGES, **ADMIN, **MORE, **MOVES}, *NEWCOMERS, *STRANGERS]


def main(names: list[str]) -> None:
    """Look at each page in both sizes and both themes; name what is wrong.

    Names of pages, sizes or themes in `names` leave the others out.
    """
    if TUTORIAL in names:
        take_tutorial(ROOT / "docs")
        return
    FOLDER.mkdir(exist_ok=True)
    wanted = [name for name in EVERY if name in names] or EVERY
    sizes = [size for size in SIZES if size in names] or SIZES
    themes = [theme for theme in THEMES if theme in names] or THEMES
    with running_site(seed="tests.browser.seed.site") as site, chromium() as browser:
        for size, theme in itertools.product(sizes, themes):
            for person, moves in moves_of_all().items():
                chosen = {name: move for name, move in moves.items() if name in wanted}
                if chosen:
                    take(browser, site, chosen, Look(person, size, theme))


def take_tutorial(folder: Path) -> None:
    """Walk the tutorial on a site of its own; write `tutorial-*.png` to `folder`."""
    with tempfile.TemporaryDirectory() as data, chromium() as browser:
        site = start(Path(data, "data"))
        try:
            size = {"width": TUTORIAL_WIDTH, "height": 900}
            context = browser.new_context(viewport=size, color_scheme="light")
            page = context.new_page()

            def picture(name: str, height: int) -> None:
                clip = {"x": 0, "y": TOP_BAR, "width": TUTORIAL_WIDTH, "height": height}
                page.screenshot(path=folder / f"tutorial-{name}.png", clip=clip)

            url = enter(page, site)
            walk_to_the_gate(page, url, picture)
            walk_to_the_end(page, url, picture)
            context.close()
        finally:
            site.end()


class Look(NamedTuple):
    """Who looks, and through what."""

    person: str
    size: str
    theme: str


def moves_of_all() -> dict[str, dict[str, Move]]:
    """Return for each person how they come to each of their pages."""
    return {
        "admin": {**opening(PAGES), **opening(ADMIN), **opening(MORE), **MOVES},
        "nia": opening(NEWCOMERS),
        "": opening(STRANGERS),
    }


def opening(pages: dict[str, str]) -> dict[str, Move]:
    """Return moves that just open an address."""
    return {name: partial(press, path=path) for name, path in pages.items()}


def take(browser: Browser, site: Site, moves: dict[str, Move], look: Look) -> None:
    """Take the pictures of one person in one size and theme."""
    width, height = SIZES[look.size]
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if look.theme == "dark" else "light",
        device_scale_factor=1,
        has_touch=look.size == "390",
    )
    context.set_default_timeout(10_000)
    page = seen_by(context, site.url, look.person)
    received = listen(page)
    for name, move in moves.items():
        try:
            move(page, site)
            page.wait_for_load_state()
            page.wait_for_timeout(150)
            wide, tall = overflow(page), height_of(page, height)
        except PlaywrightError as error:
            received.append(f"{name}: {error}")
            wide, tall = 0, height
        if wide > 0:
            received.append(f"{name}: {wide} px too wide")
        page.set_viewport_size({"width": width, "height": tall})
        page.screenshot(path=FOLDER / f"{name}-{look.size}-{look.theme}.png")
        page.set_viewport_size({"width": width, "height": height})
    sys.stdout.writelines(f"{look.size} {look.theme}: {line}\n" for line in received)
    context.close()


def height_of(page: Page, least: int) -> int:
    """Return how tall the window must be to show all, bars at its bottom included."""
    tall = page.evaluate("document.documentElement.scrollHeight")
    return min(max(int(tall), least), TALLEST)


if __name__ == "__main__":
    main(sys.argv[1:])
