// Groups of controls that are one Tab stop: arrow keys move inside them, as in the
// ARIA patterns "toolbar" and "grid". Without this script, each control is a stop.
(() => {
  "use strict";
  const CONTROLS = "a[href], button, input, select, textarea, summary";
  const STEPS = { ArrowUp: -1, ArrowDown: 1, ArrowLeft: -1, ArrowRight: 1 };
  const seen = new WeakSet();

  const controlsOf = (place) => [...place.querySelectorAll(CONTROLS)];
  const shownOf = (place) =>
    controlsOf(place).filter((one) => !one.disabled && one.checkVisibility());

  // Exactly one control that is shown can be reached with Tab.
  function settle(group, wanted) {
    const shown = shownOf(group);
    const stop =
      shown.find((one) => one === wanted) ??
      shown.find((one) => one.tabIndex === 0 && one.hasAttribute("tabindex")) ??
      shown.find((one) => one.getAttribute("aria-current")) ??
      shown[0];
    for (const one of controlsOf(group)) one.tabIndex = one === stop ? 0 : -1;
  }

  // An update of the page may bring back what the server sends without this script.
  function find() {
    for (const group of document.querySelectorAll("[data-roving]")) {
      group.setAttribute("role", group.dataset.roving);
      if (group.dataset.label) group.setAttribute("aria-label", group.dataset.label);
      settle(group, document.activeElement);
      if (seen.has(group)) continue;
      seen.add(group);
      new MutationObserver(() => settle(group, document.activeElement)).observe(group, {
        attributeFilter: ["hidden"],
        childList: true,
        subtree: true,
      });
    }
  }

  function inToolbar(group, event) {
    const shown = shownOf(group);
    const at = shown.indexOf(event.target);
    if (event.key === "Home") return shown[0];
    if (event.key === "End") return shown.at(-1);
    if (event.key === "ArrowUp" || event.key === "ArrowDown") return undefined;
    return shown.at((at + STEPS[event.key]) % shown.length);
  }

  function inGrid(group, event) {
    const rows = controlsOf(group)
      .map((one) => one.closest("tr"))
      .filter((row, at, all) => all.indexOf(row) === at && shownOf(row).length > 0);
    const row = event.target.closest("tr");
    const cells = shownOf(row);
    const column = cells.indexOf(event.target);
    const across = event.key === "ArrowLeft" || event.key === "ArrowRight";
    if (across) return cells[column + STEPS[event.key]];
    if (!event.ctrlKey && event.key === "Home") return cells[0];
    if (!event.ctrlKey && event.key === "End") return cells.at(-1);
    let there = rows[rows.indexOf(row) + STEPS[event.key]];
    if (event.key === "Home") there = rows[0];
    if (event.key === "End") there = rows.at(-1);
    if (!there) return undefined;
    const others = shownOf(there);
    return others[Math.min(column, others.length - 1)];
  }

  // Menus of a grid open with Enter or Space; then the arrow keys are theirs.
  const isOpenMenu = (one) =>
    one.matches("select") && CSS.supports("selector(:open)") && one.matches(":open");

  document.addEventListener("keydown", (event) => {
    const group = event.target.closest?.("[data-roving]");
    if (!group || event.altKey || event.metaKey || isOpenMenu(event.target)) return;
    const isGrid = group.dataset.roving === "grid";
    if (isGrid && event.key === "Enter" && event.target.matches("select")) {
      event.preventDefault();
      event.target.showPicker();
      return;
    }
    if (!(event.key in STEPS) && event.key !== "Home" && event.key !== "End") return;
    const next = isGrid ? inGrid(group, event) : inToolbar(group, event);
    // A menu keeps its value: the arrow keys leave it instead of changing it.
    if (isGrid || next) event.preventDefault();
    next?.focus();
  });
  document.addEventListener("focusin", (event) => {
    const group = event.target.closest("[data-roving]");
    if (group && seen.has(group)) settle(group, event.target);
  });
  document.addEventListener("htmx:after:swap", find);
  find();
})();
