"""What axe-core finds wrong with a page."""

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
COLOURS = ["color-contrast", "link-in-text-block"]
"""The rules that another theme can break."""
RUN = """options => {
  const isAbove = (element) =>
    element.matches("details[open].menu > div") ||
    ["fixed", "sticky"].includes(getComputedStyle(element).position);
  const isPartlyUnder = (element) => {
    const box = element.getBoundingClientRect();
    const [xs, ys] = [
      [box.left, box.right],
      [box.top, box.bottom],
    ].map(([from, to]) => [from + 1, (from + to) / 2, to - 1]);
    return xs.some((x) =>
      ys.some((y) => {
        let above = document.elementFromPoint(x, y);
        while (above && !isAbove(above)) above = above.parentElement;
        return above && !above.contains(element);
      }),
    );
  };
  const isCovered = (rule, node) =>
    rule.id === "target-size" &&
    isPartlyUnder(document.querySelector(node.target[0]));
  return axe.run(options).then((done) =>
    done.violations.map((rule) => ({
      ...rule,
      nodes: rule.nodes.filter((node) => !isCovered(rule, node)),
    })),
  );
}"""
"""A target that is partly under a fixed bar is pressed after scrolling to it, and one
that is partly under an open menu after closing that: a click beside it or Esc does.
"""


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
