"""Pages that come after a move of a person, or of bad luck; for pictures of them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from playwright.sync_api import Page

from tests.browser.site import Site

Move = Callable[[Page, Site], None]


def send(page: Page, site: Site, *, path: str, form: str, **typed: str) -> None:
    """Open `path`, type, and send its form whatever the browser thinks of it."""
    page.goto(site.url + path)
    for name, value in typed.items():
        page.locator(f"{form} [name={name.replace('_', '-')}]").first.fill(value)
    page.locator(form).evaluate("form => { form.noValidate = true }")
    with leaving(page):
        page.locator(form).evaluate("form => form.requestSubmit()")


def call_tool(page: Page, site: Site, *, path: str, arg: str, value: str) -> None:
    """Call a tool on its page, and wait for the result."""
    page.goto(site.url + path)
    if (tab := page.locator(".views [data-view='2']")).is_visible():
        tab.click()
    page.fill(f"[name=arg-{arg}]", value)
    page.click("[data-call]")
    page.wait_for_selector("#tool-result")


@contextmanager
def leaving(page: Page) -> Iterator[None]:
    """Wait until what is done inside has led to another page, and that is whole."""
    page.evaluate("window.isLeft = true")
    yield
    page.wait_for_function("() => !window.isLeft && document.readyState === 'complete'")


def press(
    page: Page,
    site: Site,
    *,
    path: str,
    buttons: Sequence[str] = (),
    leading_on: Sequence[str] = (),
) -> None:
    """Open `path` and click what is there, at last what leads to another page."""
    page.goto(site.url + path)
    for button in map(page.locator, buttons):
        if button.first.is_visible():  # some are for wide windows only
            button.first.click()
    for button in map(page.locator, leading_on):
        if button.first.is_visible():
            with leaving(page):
                button.first.click()


def put(page: Page, site: Site, *, template: str) -> None:
    """Show a page that the site gives only when something is broken."""
    page.goto(f"{site.url}/workers/")
    code = "from django.template.loader import render_to_string as made"
    html = site.manage("shell", "-v", "0", "-c", f"{code}; print(made('{template}'))")
    page.route("**/broken/", lambda route: route.fulfill(body=html))
    page.goto(f"{site.url}/broken/")


def scroll(page: Page, site: Site, *, path: str, to: str) -> None:
    """Open `path` and bring a part of it into view."""
    page.goto(site.url + path)
    page.locator(to).first.evaluate("part => part.scrollIntoView()")


def beat(page: Page, site: Site, *, path: str) -> None:
    """Open `path` just after a sign of life of every worker and run."""
    site.manage("shell", "-v", "0", "-c", BEAT.format(ago=2))
    html = page.request.get(site.url + path).text()
    site.manage("shell", "-v", "0", "-c", BEAT.format(ago=-3600))
    page.route(site.url + path, lambda route: route.fulfill(body=html))
    page.goto(site.url + path)


def peek(page: Page, site: Site) -> None:
    """Open a run beside the list, which needs a wide window."""
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"{site.url}/runs/?status=succeeded")
    page.locator(ROW).first.wait_for()
    page.keyboard.press("j")
    page.keyboard.press("Space")
    page.wait_for_selector("#run-peek:visible .bar")


def choose_operations(page: Page, site: Site) -> None:
    """Give a document of a service, and choose two of its operations."""
    path, form = "/admin/tools/tool/import/", "#content-main form"
    send(page, site, path=path, form=form, document=SERVICE)
    for number in (1, 3):
        page.check(f"#operation-{number}")


BEAT = """
from datetime import timedelta
from django.utils import timezone
from runs.models import Run, Worker
now = timezone.now()
Worker.objects.filter(name__in=["w1", "w2"]).update(
    last_heartbeat=now - timedelta(seconds={ago})
)
Run.objects.filter(pk=9030).update(lease_until=now + timedelta(seconds=30 - {ago}))
"""
SERVICE = """
openapi: 3.1.0
info: {title: Parcels, version: "2"}
servers: [{url: "https://parcels.example/v2"}]
paths:
  /parcels:
    get:
      operationId: list_parcels
      summary: Lists the parcels of a customer, newest first.
      parameters:
        - {name: customer, in: query, required: true, schema: {type: string}}
    post:
      operationId: send_parcel
      summary: Orders a courier who picks a parcel up.
      requestBody:
        content:
          application/json:
            schema: {type: object, properties: {to: {type: string}}, required: [to]}
  /parcels/{number}:
    get:
      operationId: track_parcel
      summary: Says where a parcel is, and when it arrives.
      parameters:
        - {name: number, in: path, required: true, schema: {type: string}}
"""
ROW = "#run-selection tbody tr"
MORE = {
    "agents-archive": "/agents/?archived=1",
    "agent-asks": "/agents/2/",
    "compare-others": "/runs/compare/?a=9003&b=9002",
    "run-search-none": "/runs/9002/?q=nothing-fits-this",
    "tool-asks": "/tools/book_table/",
}
"""Pages for pictures alone."""
MOVES: dict[str, Move] = {
    "agent-tools": partial(scroll, path="/agents/1/edit/", to="#agent-tools"),
    "run-running": partial(beat, path="/runs/9030/"),
    "workers": partial(beat, path="/workers/"),
    "tool-openapi-chosen": choose_operations,
    "runs-chosen": partial(
        press,
        path="/runs/?status=succeeded",
        buttons=[f"{ROW}:nth-child({n}) input" for n in (1, 2)],
    ),
    "runs-peek": peek,
    "tools-chosen": partial(
        press,
        path="/tools/",
        buttons=[f"#tool-table tbody tr:nth-child({n}) input" for n in (1, 2)],
    ),
    "runs-delete": partial(
        press,
        path="/runs/?status=succeeded",
        buttons=[f"{ROW}:nth-child(9) input", "#run-more summary"],
        leading_on=["button[value=delete]"],
    ),
    "runs-filters": partial(
        press, path="/runs/", buttons=["summary:has-text('Time, cost and more')"]
    ),
    "run-menu": partial(
        press,
        path="/runs/9002/",
        buttons=["#run-actions summary:has-text('More')"],
    ),
    "run-keys": partial(press, path="/runs/9002/", buttons=["text=all shortcuts"]),
    "agent-mistakes": partial(send, path="/agents/new/", form="#agent-form"),
    "agent-import-wrong": partial(
        send, path="/agents/import/", form="main form", text="{not: json"
    ),
    "provider-mistakes": partial(send, path="/providers/new/", form="main form"),
    "prompt-mistakes": partial(send, path="/prompts/new/", form="main form"),
    "token-made": partial(
        send, path="/account/tokens/", form="#token-form", name="nightly"
    ),
    "playground-four": partial(
        press, path="/playground/", leading_on=["button[value=add]"] * 3
    ),
    "tool-tried": partial(call_tool, path="/tools/double/", arg="x", value="21"),
    "tool-try-failed": partial(
        call_tool, path="/tools/city_forecast/", arg="city", value="北京"
    ),
    "tool-mistakes": partial(
        send, path="/admin/tools/tool/add/?kind=http", form="#tool_form"
    ),
    "run-button": partial(press, path="/runs/9002/stop/"),
    "broken": partial(put, template="500.html"),
    "unreadable": partial(put, template="400.html"),
    "database-away": partial(put, template="errors/database_away.html"),
}
