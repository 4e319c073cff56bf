// The table of an experiment with the keyboard: cells, and what belongs to the selected one.
(() => {
  "use strict";
  const find = (selector) => document.querySelector(selector);
  const all = (selector, where = document) => [...where.querySelectorAll(selector)];

  function select(cell) {
    if (!cell) return;
    cell.scrollIntoView({ block: "nearest", inline: "nearest" });
    cell.click();
  }

  // Beyond the first or last row, the neighboring page of the table opens.
  function move(down, right) {
    const rows = all("#experiment-table tbody tr");
    const here = find("#experiment-table .cell[aria-current]");
    if (!here) return select(find("#experiment-table .cell"));
    const cells = all(".cell", here.closest("tr"));
    const row = rows.indexOf(here.closest("tr")) + down;
    const column = cells.indexOf(here) + right;
    if (row < 0) return find("#experiment-previous")?.click();
    if (row >= rows.length) return find("#experiment-next")?.click();
    select(all(".cell", rows[row])[column]);
  }

  function selectWorse() {
    const cells = all("#experiment-table .cell");
    const here = cells.findIndex((cell) => cell.hasAttribute("aria-current"));
    const worse = cells.slice(here + 1).find((cell) => cell.dataset.delta === "w");
    if (worse) select(worse);
    else find("#experiment-next")?.click();
  }

  const KEYS = {
    j: () => move(1, 0),
    k: () => move(-1, 0),
    l: () => move(0, 1),
    h: () => move(0, -1),
    w: selectWorse,
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || find("dialog[open]")) return;
    const isText = "input:not([type=radio]), textarea, select, [contenteditable]";
    if (event.target.closest(isText)) return;
    if (event.key === "Enter" && event.target.closest("a, button, summary")) return;
    const key = event.key.toLowerCase();
    const target = find(`#experiment-selected [data-press="${CSS.escape(key)}"]`);
    const act = KEYS[key] ?? (target && !event.repeat ? () => target.click() : null);
    if (!act) return;
    event.preventDefault();
    act();
  });
})();
