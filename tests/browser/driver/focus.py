"""How the focus moves through a page: stops of the Tab key, and bars that hide it."""

from playwright.sync_api import Page


def hidden_focus(page: Page) -> list[str]:
    """Return what is under a bar when the focus comes to it, from above or below.

    `focus()` scrolls as the Tab key does, but before it returns: there is no wait. Of
    what is alike in a part of the page, the first two and the last two are looked at.
    """
    return list(page.evaluate(HIDDEN))


def tab_stops(page: Page) -> list[str]:
    """Press Tab from the top of the page to its end; return what had the focus."""
    stops: list[str] = []
    while stop := press_tab(page):
        stops.append(stop)
        assert len(stops) < 500
    return stops


def press_tab(page: Page) -> str:
    """Press Tab; return the tag that has the focus now, or nothing after the last."""
    page.keyboard.press("Tab")
    return str(
        page.evaluate(
            "document.activeElement === document.body ? ''"
            " : document.activeElement.cloneNode().outerHTML.slice(0, 120)"
        )
    )


HIDDEN = """() => {
    const faults = new Set();
    const barAbove = (spot) => {
        while (spot && !/fixed|sticky/.test(getComputedStyle(spot).position))
            spot = spot.parentElement;
        return spot;
    };
    const look = (one) => {
        one.focus();
        if (document.activeElement !== one) return;
        const seen = one.offsetWidth > 1 ? one : one.labels?.[0] ?? one;
        const box = seen.getBoundingClientRect();
        const left = Math.max(box.left, 0), right = Math.min(box.right, innerWidth);
        const top = Math.max(box.top, 0), bottom = Math.min(box.bottom, innerHeight);
        const half = (bottom - top) / 2;  // a browser shows the caret, not all lines
        const y = top + (one.localName === "textarea" ? Math.min(half, 20) : half);
        const spot = document.elementFromPoint((left + right) / 2, y);
        const bar = barAbove(spot), name = one.id || one.outerHTML.slice(0, 90);
        if (left >= right || top >= bottom) faults.add(`${name} is out of sight`);
        else if (bar && !bar.contains(one) && !one.contains(spot))
            faults.add(`${name} is under ${bar.id || bar.className}`);
    };
    const all = "a[href], button, input, select, textarea, summary, [tabindex]";
    const found = [...document.querySelectorAll(all)];
    const reached = found.filter((one) => one.tabIndex >= 0);
    const part = (one) => one.closest("[id]")?.id.replace(/[0-9]+/g, "");
    const kind = (one) => `${part(one)} ${one.tagName} ${one.className}`;
    const alike = Object.values(Object.groupBy(reached, kind));
    const few = new Set(alike.flatMap((all) => [...all.slice(0, 2), ...all.slice(-2)]));
    const looked = reached.filter((one) => few.has(one));
    for (const one of [...looked, ...looked.toReversed()]) look(one);
    return [...faults];
}"""
