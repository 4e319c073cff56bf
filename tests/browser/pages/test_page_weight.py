"""How much script the pages load, with their editors and dialogs in use."""

import gzip

import pytest

from tests.browser.driver.chromium import seen_by
from tests.browser.shots import ADMIN, PAGES

pytestmark = pytest.mark.browser

MAX_SCRIPT = 90_000
"""Gzipped bytes of JavaScript of a page."""
PYTHON_TOOL = {"python-tool": "/tools/new/python/"}
OPENED = [
    *("home", "runs", "run", "run-running", "agent", "agent-edit", "agent-new"),
    *("chat", "chat-agent", "chat-conversation", "tools", "tool", "python-tool"),
    *("admin-tool-python", "prompt", "playground", "approvals"),
    *("experiment", "experiment-live", "dataset", "annotate", "rule", "agent-publish"),
    "usage",
]


@pytest.fixture(scope="module")
def context(browser, lived_in):
    """A browser in which admin is signed in."""
    opened = browser.new_context()
    seen_by(opened, lived_in.url, "admin").close()
    yield opened
    opened.close()


@pytest.mark.parametrize("name", OPENED)
@pytest.mark.slow
def test_a_page_loads_little_script(context, lived_in, name):
    sizes: dict[str, int] = {}
    page = context.new_page()
    page.on(
        "requestfinished",
        lambda request: (
            request.resource_type == "script"
            and sizes.update({request.url: len(gzip.compress(body_of(request)))})
        ),
    )

    page.goto(lived_in.url + {**PAGES, **ADMIN, **PYTHON_TOOL}[name])
    page.evaluate("new Promise(requestAnimationFrame)")
    for area in page.locator(".editor textarea").all():
        area.click(force=True)
        page.keyboard.type("a")
    page.wait_for_timeout(200)  # a script may load another one

    page.close()
    assert any("htmx" in url for url in sizes)
    assert sum(sizes.values()) <= MAX_SCRIPT, sizes


def body_of(request) -> bytes:
    """Return the body of the answer."""
    return bytes(request.response().body())
