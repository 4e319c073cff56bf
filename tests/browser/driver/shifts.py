"""How much of a page moved although nobody did anything."""

from playwright.sync_api import BrowserContext, Page

MOST = 0.02
"""Cumulative layout shift of a page, its live updates included."""
WATCH = """
window.shifts = [];
new PerformanceObserver((list) => {
    for (const { value, hadRecentInput, sources } of list.getEntries()) {
        if (hadRecentInput) continue;
        const moved = sources.map(({ node }) => node?.id || node?.className || "text");
        window.shifts.push([value, moved]);
    }
}).observe({ type: "layout-shift", buffered: true });
"""


def watch_shifts(context: BrowserContext) -> None:
    """Record what moves in each page that `context` opens from now on."""
    context.add_init_script(WATCH)


def find_shifts(page: Page) -> list[tuple[float, list[str]]]:
    """Return what has moved if it is too much; an empty list otherwise."""
    page.wait_for_timeout(100)  # an observer is called after a frame
    shifts = page.evaluate("window.shifts")
    return shifts if sum(value for value, _moved in shifts) >= MOST else []
