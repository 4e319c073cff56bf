"""Starting the real Chromium, and listening to what it complains about."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start Debian's Chromium and end it; without its own windows, if that is there."""
    with sync_playwright() as play:
        program = shutil.which("chromium-headless-shell") or "/usr/bin/chromium"
        browser = play.chromium.launch(executable_path=program, args=ARGUMENTS)
        # turning icons keep a processor busy
        browser.new_context = partial(browser.new_context, reduced_motion="reduce")
        yield browser
        browser.close()


def listen(page: Page) -> list[str]:
    """Return a list that fills with console errors, CSP breaches and exceptions."""
    received: list[str] = []

    def on_console(message: object) -> None:
        if getattr(message, "type", "") in {"error", "warning"}:
            received.append(f"{page.url}: {getattr(message, 'text', '')}")

    page.on("console", on_console)
    page.on("pageerror", lambda error: received.append(f"{page.url}: {error}"))
    return received


def overflow(page: Page) -> int:
    """Return by how many pixels the page is wider than its window."""
    script = "(e => e.scrollWidth - e.clientWidth)(document.documentElement)"
    return int(page.evaluate(script))


def seen_by(context: BrowserContext, url: str, person: str) -> Page:
    """Open a page for somebody of the seed; the empty name is a stranger."""
    if not person:
        return context.new_page()
    return signed_in(context, url, person, "admin" if person == "admin" else "secret")


SESSIONS: dict[tuple[str, str], list[Any]] = {}
"""Cookies of those who have signed in, by site and name: a new sign-in takes 2 s."""


def signed_in(context: BrowserContext, url: str, name: str, password: str) -> Page:
    """Return an empty page of somebody who is signed in, through the form if needed."""
    page = context.new_page()
    if resume_session(context, url, name):
        return page
    page.goto(f"{url}/sign-in/")
    page.fill("input[name=username]", name)
    page.fill("input[name=password]", password)
    page.click("button:has-text('Sign in')")
    # people who only chat see the chat
    page.wait_for_url(re.compile(f"^{re.escape(url)}/(chat/)?$"))
    keep_session(page, url, name)
    return page


def keep_session(page: Page, url: str, name: str) -> None:
    """Keep the cookies, and leave the page as `resume_session` does."""
    SESSIONS[url, name] = page.context.cookies()
    page.goto("about:blank")


def resume_session(context: BrowserContext, url: str, name: str) -> bool:
    """Sign in by the cookies of an earlier test; False if they are no longer valid."""
    if (url, name) not in SESSIONS:
        return False
    context.add_cookies(SESSIONS[url, name])
    response = context.request.get(f"{url}/shortcuts/", max_redirects=0)
    return response.status == 200
