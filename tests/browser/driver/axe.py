"""What axe-core finds wrong with a page."""

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
COLOURS = ["color-contrast", "link-in-text-block"]
"""The rules that another theme can break."""
RUN = "options => axe.run(options).then((done) => done.violations)"


def violations(page: Page, rules: list[str] = WCAG) -> list[str]:
    """Return a line for each element that breaks a rule of WCAG 2.2 AA."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(Axe().axe_script)
    options = {"runOnly": rules, "resultTypes": ["violations"], "preload": False}
    return [
        f"{rule['id']}: {node['target']} {node['failureSummary']}"
        for rule in page.evaluate(RUN, options)
        for node in rule["nodes"]
    ]
